"""tools/fetch_data with a local server: downloads, rejected files, and the files that remain after errors."""
import bz2
import contextlib
import functools
import gzip
import hashlib
import http.server
import importlib.machinery
import importlib.util
import io
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import unittest
import zipfile
from unittest import mock

from program import ROOT, run_tests

MNIST = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz",
         "t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
CIFAR10 = [f"data_batch_{batch}.bin" for batch in range(1, 6)] + ["test_batch.bin"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and an endless response below /endless."""

    def do_GET(self):
        if not self.path.startswith("/endless/"):
            return super().do_GET()
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(ConnectionError):
            while True:
                self.wfile.write(bytes(1 << 16))
                time.sleep(float(self.path.split("/")[2]))

    def log_message(self, *_):
        pass


def fetch_data_module():
    """tools/fetch_data as a module; the file has no extension."""
    loader = importlib.machinery.SourceFileLoader("fetch_data", os.path.join(ROOT, "tools", "fetch_data"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("fetch_data", loader))
    sys.modules["fetch_data"] = module  # needed by dataclasses
    loader.exec_module(module)
    return module


FETCH_DATA = fetch_data_module()


def tar_of(members):
    """A .tar.gz of {name: content}."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def zip_of(members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def usps_line(label, value):
    return f"{label} " + " ".join(f"{index}:{value}" for index in range(1, 257)) + "\n"


class FetchDataTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.served = os.path.join(folder.name, "served")
        self.into = os.path.join(folder.name, "data")
        self.checksums = os.path.join(folder.name, "checksums")
        os.mkdir(self.served)
        open(self.checksums, "w").close()
        handler = functools.partial(Quiet, directory=self.served)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)

    def serve(self, name, content, kind="sha256"):
        with open(os.path.join(self.served, name), "wb") as file:
            file.write(content)
        with open(self.checksums, "a") as file:
            file.write(f"{hashlib.new(kind, content).hexdigest()}  {name}\n")

    def words(self, *arguments):
        return [os.path.join(ROOT, "tools", "fetch_data"), "--into", self.into, "--checksums", self.checksums,
                *arguments]

    def fetch(self, *arguments):
        """Calls the program in this process. Returns what subprocess.run() returns for captured text."""
        out, errors = io.StringIO(), io.StringIO()
        with mock.patch.object(sys, "argv", self.words(*arguments)), mock.patch.dict(os.environ), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            os.environ.pop("MNEME_DATA", None)
            try:
                code = FETCH_DATA.main()
            except SystemExit as ended:
                code = ended.code
        return subprocess.CompletedProcess(sys.argv, code, out.getvalue(), errors.getvalue())

    def content(self, *path):
        with open(os.path.join(self.into, *path), "rb") as file:
            return file.read()

    def assert_nothing_left(self):
        self.assertEqual([] if not os.path.isdir(self.into) else os.listdir(self.into), [])

    def test_plain_files_are_downloaded_once(self):
        for index, name in enumerate(MNIST):
            self.serve(name, b"content %d" % index, kind="md5")
        environment = {key: value for key, value in os.environ.items() if key != "MNEME_DATA"}
        done = subprocess.run([sys.executable, *self.words("mnist", "--base", self.url)], capture_output=True,
                              text=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.content("mnist", MNIST[2]), b"content 2")
        self.assertEqual(os.listdir(self.into), ["mnist"])
        self.assertIn(f"export MNEME_DATA={self.into}", done.stdout)
        again = self.fetch("mnist", "--base", "http://127.0.0.1:1/")
        self.assertEqual(again.returncode, 0)
        self.assertIn("already in", again.stdout)

    def test_a_tar_archive_is_unpacked_into_its_folder(self):
        self.serve("cifar-10-binary.tar.gz",
                   tar_of({f"cifar-10-batches-bin/{name}": name.encode() for name in CIFAR10 + ["readme.html"]}))
        done = self.fetch("cifar10", "--base", f"cifar10={self.url}/")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(os.path.join(self.into, "cifar-10-batches-bin"))), CIFAR10)
        self.assertEqual(self.content("cifar-10-batches-bin", "data_batch_3.bin"), b"data_batch_3.bin")

    def test_a_zip_archive_gives_only_the_files_of_the_set(self):
        names = [f"emnist-{of}-{split}-{kind}-ubyte.gz" for of in ("balanced", "letters")
                 for split in ("train", "test") for kind in ("images-idx3", "labels-idx1")]
        self.serve("gzip.zip", zip_of({f"gzip/{name}": name for name in names}))
        done = self.fetch("emnist-balanced", "--base", self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(os.listdir(os.path.join(self.into, "emnist-balanced"))), sorted(names[:4]))

    def test_folders_of_a_zip_archive_are_complete_and_may_be_fetched_again(self):
        files = ["wnids.txt", "words.txt", "train/n00000001/images/n00000001_0.JPEG", "val/val_annotations.txt",
                 "val/images/val_0.JPEG"]
        archive = zip_of({f"tiny-imagenet-200/{name}": name for name in files + ["test/images/test_0.JPEG"]})
        self.serve("tiny-imagenet-200.zip", archive)
        for arguments in ((), ("--force",)):
            done = self.fetch("tiny-imagenet", "--base", self.url, *arguments)
            self.assertEqual(done.returncode, 0, done.stderr)
            folder = os.path.join(self.into, "tiny-imagenet-200")
            found = [os.path.relpath(os.path.join(place, name), folder)
                     for place, _, names in os.walk(folder) for name in names]
            self.assertEqual(sorted(found), sorted(files))

    def test_an_archive_without_a_required_folder_leaves_no_files(self):
        self.serve("tiny-imagenet-200.zip", zip_of({"tiny-imagenet-200/wnids.txt": "n00000001",
                                                    "tiny-imagenet-200/words.txt": "n00000001 one"}))
        done = self.fetch("tiny-imagenet", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("the archive lacks train, val", done.stderr)
        self.assert_nothing_left()

    def test_usps_is_converted_to_idx(self):
        self.serve("usps.bz2", bz2.compress((usps_line(7, -1) + usps_line(1, 1)).encode()))
        self.serve("usps.t.bz2", bz2.compress(usps_line(10, 0.5).encode()))
        done = self.fetch("usps", "--base", self.url)
        self.assertEqual(done.returncode, 0, done.stderr)
        images = gzip.decompress(self.content("usps", "usps-train-images-idx3-ubyte.gz"))
        self.assertEqual(images[:16].hex(), "00000803" "00000002" "00000010" "00000010")
        self.assertEqual(images[16:], bytes(256) + b"\xff" * 256)
        labels = gzip.decompress(self.content("usps", "usps-train-labels-idx1-ubyte.gz"))
        self.assertEqual(labels.hex(), "00000801" "00000002" "0600")
        images = gzip.decompress(self.content("usps", "usps-test-images-idx3-ubyte.gz"))
        self.assertEqual(set(images[16:]), {191})  # 1.5 / 2 * 255 = 191.25

    def test_an_invalid_usps_row_is_refused_by_line(self):
        self.serve("usps.bz2", bz2.compress((usps_line(7, -1) + "3 1:0.5\n").encode()))
        self.serve("usps.t.bz2", bz2.compress(usps_line(10, 0.5).encode()))
        done = self.fetch("usps", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("usps.bz2:2: not a row of USPS", done.stderr)
        self.assert_nothing_left()

    def test_a_wrong_checksum_leaves_no_files(self):
        for name in MNIST:
            self.serve(name, b"content")
        with open(os.path.join(self.served, MNIST[3]), "wb") as file:
            file.write(b"another content")
        done = self.fetch("mnist", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.url}/{MNIST[3]}: the sha256 of the 15 bytes received is", done.stderr)
        self.assert_nothing_left()

    def test_published_checksums_are_checked_unless_replaced(self):
        for name in MNIST:
            self.serve(name, b"content")
        open(self.checksums, "w").close()
        done = self.fetch("mnist", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("but f68b3c2dcbeaaa9fbdd348bbdeb94873 is published", done.stderr)

    def test_a_missing_file_is_reported_with_its_url(self):
        done = self.fetch("cifar100", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{self.url}/cifar-100-binary.tar.gz: the server answers 404", done.stderr)
        self.assert_nothing_left()

    def test_an_unreachable_server_is_reported(self):
        done = self.fetch("mnist", "--base", "http://127.0.0.1:1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("http://127.0.0.1:1/train-images-idx3-ubyte.gz:", done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_an_archive_with_paths_outside_its_folder_is_refused(self):
        good = {f"cifar-10-batches-bin/{name}": b"x" for name in CIFAR10}
        for bad in ("../escaped", "/tmp/escaped", "a/../../escaped", "..\\escaped"):
            with self.subTest(bad):
                self.serve("cifar-10-binary.tar.gz", tar_of({**good, bad: b"x"}))
                done = self.fetch("cifar10", "--base", self.url)
                self.assertEqual(done.returncode, 1)
                self.assertIn(f"the archive holds '{bad}', which is outside the target folder", done.stderr)
                self.assert_nothing_left()
        self.serve("gzip.zip", zip_of({"../escaped": b"x"}))
        done = self.fetch("emnist-balanced", "--base", self.url)
        self.assertIn("the archive holds '../escaped'", done.stderr)
        self.assert_nothing_left()

    def test_a_link_in_place_of_a_file_is_refused(self):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for name in CIFAR10:
                entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
                entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
                archive.addfile(entry)
        self.serve("cifar-10-binary.tar.gz", packed.getvalue())
        done = self.fetch("cifar10", "--base", self.url)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is not an ordinary file", done.stderr)
        self.assert_nothing_left()

    def test_an_archive_that_lacks_files_or_is_broken_is_refused(self):
        whole = tar_of({f"x/{name}": os.urandom(5000) for name in CIFAR10})
        for content, words in ((tar_of({"x/data_batch_1.bin": b"x"}), "the archive lacks data_batch_2.bin"),
                               (b"no archive", "cannot be unpacked"),
                               (whole[:9000], "cannot be unpacked")):
            with self.subTest(words):
                self.serve("cifar-10-binary.tar.gz", content)
                done = self.fetch("cifar10", "--base", self.url)
                self.assertEqual(done.returncode, 1)
                self.assertIn(words, done.stderr)
                self.assertNotIn("Traceback", done.stderr)
                self.assert_nothing_left()

    def test_a_failure_keeps_existing_files(self):
        os.makedirs(os.path.join(self.into, "mnist"))
        for name in MNIST:
            self.serve(name, b"new")
            with open(os.path.join(self.into, "mnist", name), "wb") as file:
                file.write(b"old")
        os.remove(os.path.join(self.served, MNIST[1]))
        self.assertEqual(self.fetch("mnist", "--force", "--base", self.url).returncode, 1)
        self.assertEqual({self.content("mnist", name) for name in MNIST}, {b"old"})
        self.serve(MNIST[1], b"new")
        self.assertEqual(self.fetch("mnist", "--force", "--base", self.url).returncode, 0)
        self.assertEqual({self.content("mnist", name) for name in MNIST}, {b"new"})

    def killed_in_the_middle(self, number):
        """Returns the exit code of a fetch that gets this signal during a download."""
        command = [sys.executable, os.path.join(ROOT, "tools", "fetch_data"), "usps", "--into", self.into,
                   "--base", self.url + "/endless/0.03/"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while not self.downloaded_bytes():
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(number)
            return process.wait()

    def downloaded_bytes(self):
        files = [os.path.join(place, name) for place, _, names in os.walk(self.into) for name in names]
        return sum(os.path.getsize(file) for file in files)

    def test_a_signal_leaves_no_files(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.assertEqual(self.killed_in_the_middle(number), 1)
                self.assert_nothing_left()

    def test_files_of_a_killed_fetch_are_removed_by_the_next_one(self):
        self.assertEqual(self.killed_in_the_middle(signal.SIGKILL), -signal.SIGKILL)
        self.assertNotEqual(os.listdir(self.into), [])
        self.assertEqual(self.fetch("usps", "--base", self.url).returncode, 1)
        self.assert_nothing_left()

    def test_an_endless_download_is_aborted(self):
        done = self.fetch("usps", "--base", self.url + "/endless/0/")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the server sends more than 20000000 bytes", done.stderr)
        self.assert_nothing_left()

    def test_an_archive_that_unpacks_to_too_much_is_refused(self):
        data_set = FETCH_DATA.DataSet("", (), "x", ("a", "b"), FETCH_DATA.unpack_zip, 1000, "")
        archive, target = os.path.join(self.served, "x.zip"), os.path.join(self.served, "target")
        os.mkdir(target)
        for sizes, refused in (((5000, 5000), False), ((5000, 5001), True)):
            with open(archive, "wb") as file:
                file.write(zip_of({name: bytes(size) for name, size in zip("ab", sizes)}))
            with self.assertRaisesRegex(FETCH_DATA.Failure, "more than 10000 bytes") if refused \
                    else contextlib.nullcontext():
                data_set.unpack(data_set, [archive], target)

    def test_bad_usage_has_exit_code_2(self):
        for arguments, words in ((["mnst"], "unknown data set 'mnst'"), ([], "name a data set"),
                                 (["mnist", "usps", "--base", self.url], "write --base NAME=URL for each"),
                                 (["mnist", "--base", "somewhere"], "not a URL"),
                                 (["mnist", "--checksums", "/nowhere"], "/nowhere")):
            with self.subTest(words):
                done = self.fetch(*arguments)
                self.assertEqual(done.returncode, 2)
                self.assertIn(words, done.stderr)
        with open(self.checksums, "w") as file:
            file.write("12345  a\n")
        done = self.fetch("mnist")
        self.assertEqual(done.returncode, 2)
        self.assertIn("checksums:1: not a line of md5sum or sha256sum", done.stderr)

    def test_list_prints_sources_and_checksums(self):
        done = self.fetch("--list")
        self.assertEqual(done.returncode, 0)
        for name in ("cifar10", "cifar100", "emnist-balanced", "fashion-mnist", "mnist", "usps"):
            self.assertIn(f"\n{name} ", "\n" + done.stdout)
        self.assertIn("https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz  md5:03b5dce01913d631647c71ecec9e9cb8",
                      done.stdout)


if __name__ == "__main__":
    run_tests()
