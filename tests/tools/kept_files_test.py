"""Files that the program writes and keeps, while other processes change, move or remove them."""
import gzip
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_gray  # noqa: E402
from program import PROGRAM, mneme, run_tests  # noqa: E402

SCENARIO = """title = "Kept"
[data]
{data}
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = {rounds}
[checkpoint]
every = 1
force = true
[model]
name = "linear"
[strategy]
name = "fedavg"
"""
MADE = 'name = "synthetic"\nshape = [16]\nclasses = 4\nrows = 400'
LONG = 100_000


class KeptFiles(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-kept-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def text(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def scenario(self, data=MADE, rounds=2):
        return self.write("kept.toml", SCENARIO.format(data=data, rounds=rounds))

    def started(self, *words, limit=None):
        process = subprocess.Popen([PROGRAM, *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=limit)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def running(self, out="run"):
        """Starts a long run and waits for its first checkpoint."""
        process = self.started("run", self.scenario(rounds=LONG), "--out", self.path(out), "--quiet", "--trace")
        while not any(name.endswith(".checkpoint") for name in self.names(out, "checkpoint")):
            self.assertIsNone(process.poll(), "it ended early")
            time.sleep(0.01)
        return process

    def names(self, *folder):
        return os.listdir(self.path(*folder)) if os.path.isdir(self.path(*folder)) else []

    # -- outputs ------------------------------------------------------------------------------------------------------

    def test_a_report_is_written_to_pipes_devices_and_targets_of_links(self):
        self.assertEqual(mneme("run", self.scenario(), "--out", self.path("run"), "--quiet").returncode, 0)
        written = mneme("report", self.path("run"), "-o", self.path("page.html"))
        self.assertEqual(written.returncode, 0, written.stderr)
        page = self.text("page.html")
        os.mkfifo(self.path("pipe"))
        read = []
        reader = threading.Thread(target=lambda: read.append(self.text("pipe")))
        reader.start()
        piped = mneme("report", self.path("run"), "-o", self.path("pipe"))
        reader.join()
        self.assertEqual((piped.returncode, read), (0, [page]))
        self.write("target.html", "old")
        os.symlink(self.path("target.html"), self.path("link.html"))
        self.assertEqual(mneme("report", self.path("run"), "-o", self.path("link.html")).returncode, 0)
        self.assertTrue(os.path.islink(self.path("link.html")))
        self.assertEqual(self.text("target.html"), page)
        device = os.stat("/dev/null").st_rdev
        self.assertEqual(mneme("report", self.path("run"), "-o", "/dev/null").returncode, 0)
        self.assertEqual(os.stat("/dev/null").st_rdev, device)
        full = mneme("report", self.path("run"), "-o", "/dev/full")
        self.assertEqual(full.returncode, 1)
        self.assertIn("/dev/full", full.stderr)
        for name, kind in (("run", "a folder"), ("nowhere", "a link")):
            if kind == "a link":
                os.symlink(self.path("not there"), self.path(name))
            refused = mneme("report", self.path("run"), "-o", self.path(name))
            self.assertEqual(refused.returncode, 1)
            self.assertIn(f"which is {kind}, not an ordinary file", refused.stderr)
        words = ["new", "fedavg", "synthetic", "-o", "/dev/stdout"]
        made = subprocess.run([PROGRAM, *words], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn('name = "fedavg"', made.stdout)

    def test_a_file_in_a_missing_folder_is_refused_with_the_folders_name(self):
        done = mneme("run", self.scenario(), "--out", self.path("run"), "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        absent = self.path("absent")
        for words in (["report", self.path("run")], ["new", "fedavg", "mnist"]):
            with self.subTest(words[0]):
                file = os.path.join(absent, "page")
                done = mneme(*words, "-o", file)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(f"cannot write '{file}', whose folder '{absent}' does not exist", done.stderr)
                self.assertNotIn(".part", done.stderr)

    def without_reader(self, *words):
        """Returns exit code and errors of a command whose stdout is a closed pipe."""
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run([PROGRAM, *words], stdout=writing, stderr=subprocess.PIPE, text=True)
        finally:
            os.close(writing)
        return done.returncode, done.stderr

    def test_a_closed_stdout_kills_no_command(self):
        scenario, run = self.scenario(), self.path("run")
        self.assertEqual(self.without_reader("run", scenario, "--out", run), (0, ""))
        for words in (["help"], ["list", "strategies"], ["validate", scenario], ["compare", run],
                      ["sweep", scenario, "--out", self.path("runs")],
                      ["run", scenario, "--json", "--out", self.path("other")]):
            with self.subTest(words=words):
                self.assertEqual(self.without_reader(*words), (0, ""))
        code, errors = self.without_reader("report", run, "-o", "/dev/stdout")
        self.assertEqual((code, errors), (1, "error: cannot write '/dev/stdout': Broken pipe\n"))

    def test_empty_arguments_are_refused_everywhere(self):
        scenario = self.scenario()
        for words in (["run", ""], ["run", scenario, "--out", ""], ["resume", ""], ["sweep", ""],
                      ["sweep", scenario, "--out", ""], ["validate", ""], ["compare", ""], ["report", ""],
                      ["report", self.folder, "-o", ""], ["report", self.folder, "--svg", ""], ["new", "fedavg", ""],
                      ["list", "runs", "--in", ""], ["node", "--make-keys", ""]):
            done = mneme(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn("is empty; give a value", done.stderr, words)
        self.assertEqual(sorted(os.listdir(self.folder)), ["kept.toml"])

    # -- runs ---------------------------------------------------------------------------------------------------------

    def ended(self, process):
        errors = process.communicate(timeout=120)[1]
        self.assertEqual(process.returncode, 1, errors)
        return errors

    def test_a_run_whose_folder_is_moved_reports_the_new_path(self):
        process = self.running()
        os.rename(self.path("run"), self.path("elsewhere"))
        errors = self.ended(process)
        self.assertIn(f"the folder of the run was moved to '{self.path('elsewhere')}'", errors)
        self.assertIn(f"resume with `mneme resume {self.path('elsewhere')}`", errors)
        self.assertFalse(os.path.exists(self.path("run")))  # nothing is created in its place
        before = self.names("elsewhere", "checkpoint")
        resumed = self.started("resume", self.path("elsewhere"), "--quiet")
        while self.names("elsewhere", "checkpoint") == before:  # until it has read one checkpoint and written another
            self.assertIsNone(resumed.poll(), "it ended early")
            time.sleep(0.01)
        resumed.send_signal(signal.SIGTERM)
        self.assertEqual(resumed.wait(timeout=60), 130, resumed.stderr.read())

    def test_a_run_whose_folder_or_files_are_removed_reports_it(self):
        for lost, said in (("", "the folder of the run was "), ("scenario.toml", "was moved or removed"),
                           ("checkpoint", "was moved or removed"), ("metrics.jsonl", "No such file"),
                           ("events.csv", "No such file")):
            out = "run-" + (lost or "all")
            process = self.running(out)
            there = self.path(out, lost) if lost else self.path(out)
            if os.path.isdir(there):
                os.rename(there, self.path("gone"))
                shutil.rmtree(self.path("gone"))
            else:
                os.rename(there, there + ".away")
            errors = self.ended(process)
            self.assertIn(said, errors, lost)
            if lost:
                self.assertEqual("resume with" in errors, lost in ("metrics.jsonl", "events.csv"), errors)

    def test_a_file_size_limit_is_reported_as_an_error(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        process = self.started("run", self.scenario(rounds=50), "--out", self.path("run"), "--quiet", "--trace",
                               limit=limit)
        self.assertIn("File too large", self.ended(process))

    # -- data ---------------------------------------------------------------------------------------------------------

    def data(self):
        return f'name = "mnist"\nroot = "{self.path("data", "mnist")}"'

    def test_runs_do_not_resume_with_other_data(self):
        write_gray(self.path("data"), "mnist", 10, 28, 8, 4)
        scenario = self.scenario(self.data())
        stopped = self.started("run", scenario, "--set", f"rounds.per_task={LONG}", "--out", self.path("run"),
                               "--quiet")
        while not any(name.endswith(".checkpoint") for name in self.names("run", "checkpoint")):
            self.assertIsNone(stopped.poll(), "it ended early")
            time.sleep(0.01)
        stopped.send_signal(signal.SIGTERM)
        self.assertEqual(stopped.wait(timeout=60), 130)
        swept = mneme("sweep", scenario, "--seeds", "1,2", "--out", self.path("runs"), "--quiet")
        self.assertEqual(swept.returncode, 0, swept.stderr)
        labels = self.path("data", "mnist", "train-labels-idx1-ubyte.gz")
        shutil.copy(labels, self.path("labels"))
        with gzip.open(labels) as file:
            content = file.read()
        with gzip.open(labels, "wb", 1) as file:  # the same number of each class, but other rows
            file.write(content[:8] + bytes(9 - label for label in content[8:]))
        resumed = mneme("resume", self.path("run"), "--quiet")
        self.assertEqual(resumed.returncode, 2, resumed.stderr)
        self.assertIn("the data set 'mnist' has changed since the run began: its digest was", resumed.stderr)
        again = mneme("sweep", scenario, "--seeds", "1,2", "--out", self.path("runs"), "--quiet")
        self.assertEqual(again.returncode, 2, again.stderr)
        self.assertEqual(again.stderr.count("the data set 'mnist' has changed since this run began"), 2)
        shutil.copy(self.path("labels"), labels)
        again = mneme("sweep", scenario, "--seeds", "1-3", "--out", self.path("runs"))
        self.assertIn("3 runs done, 0 failed", again.stdout, again.stderr)
        self.assertIn("3 runs, 2 of them done before", again.stdout)

    def test_a_backbone_is_trained_again_if_its_data_have_changed(self):
        write_gray(self.path("data"), "mnist", 10, 28, 8, 4)
        shared = f'[data]\n{self.data()}\n[model]\nname = "mlp"\nhidden = [8, 6]\n'
        self.write("backbone.toml", shared + '[tasks]\nkind = "single"\nclasses = 6\n[clients]\ncount = 1\n[rounds]\n'
                                             'per_task = 1\n[strategy]\nname = "fedavg"\n')
        scenario = self.write("learning.toml",
                              shared + 'backbone = "backbone.toml"\n[tasks]\ncount = 2\nclasses = 4\nclass_order = '
                                       '[6, 7, 8, 9, 0, 1, 2, 3, 4, 5]\n[clients]\ncount = 2\n[rounds]\nper_task = 1\n'
                                       '[strategy]\nname = "split-fedavg"\nadjustment_hidden = [8, 8]\n')
        own_cache = {**os.environ, "MNEME_CACHE": self.path("cache")}
        for turn, nets in ((1, 1), (2, 1), (3, 2)):
            if turn == 3:
                images = self.path("data", "mnist", "train-images-idx3-ubyte.gz")
                with gzip.open(images) as file:
                    content = file.read()
                with gzip.open(images, "wb", 1) as file:
                    file.write(content[:16] + bytes(255 - pixel for pixel in content[16:]))
            run = mneme("run", scenario, "--quiet", "--out", self.path(f"run{turn}"), environment=own_cache)
            self.assertEqual(run.returncode, 0, run.stderr)
            kept = [name for name in self.names("cache", "backbones") if name.endswith(".safetensors")]
            self.assertEqual(len(kept), nets, f"after run {turn}")

    # -- sweeps -------------------------------------------------------------------------------------------------------

    def test_two_concurrent_sweeps_share_the_work(self):
        scenario = self.scenario(rounds=40)
        words = [PROGRAM, "sweep", scenario, "--seeds", "1-6", "--jobs", "2", "--threads", "1", "--json", "--out",
                 self.path("runs")]
        sweeps = [subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
        said = [process.communicate(timeout=300) for process in sweeps]
        self.assertEqual([process.returncode for process in sweeps], [0, 0, 0], said)
        folders = [name for name in self.names("runs") if os.path.isdir(self.path("runs", name))]
        self.assertEqual(len(folders), 6, folders)
        computed = 0
        for out, _ in said:
            events = [json.loads(line) for line in out.splitlines()]
            finished = next(event for event in events if event["event"] == "sweep_finished")
            self.assertEqual((finished["done"], finished["failed"]), (6, 0))
            computed += sum(event["event"] == "run_started" and not event["resumed"] for event in events)
        self.assertEqual(computed, 6)  # each computed by one of them

    def test_a_sweep_reports_unwritable_paths_and_a_damaged_catalogue(self):
        scenario = self.scenario()
        refused = mneme("sweep", scenario, "--out", "/proc/self/runs")
        self.assertIn(refused.returncode, (1, 2))
        self.assertRegex(refused.stderr, "^error: .*/proc/self/runs")
        self.assertEqual(mneme("sweep", scenario, "--out", self.path("runs"), "--quiet").returncode, 0)
        catalogue = self.path("runs", "catalogue.sqlite")
        with open(catalogue, "r+b") as file:
            content = file.read()
            file.seek(content.index(b"done"))
            file.write(b"lost")
        again = mneme("sweep", scenario, "--out", self.path("runs"), "--json")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertIn("it is rebuilt from the runs", again.stdout)
        self.assertEqual(re.findall(r'"kept":(\d+)', again.stdout), ["1"])

    def without_rights(self, *words):
        """Runs the program without root's right to ignore file permissions."""
        if os.getuid() != 0:
            return mneme(*words)
        if not shutil.which("setpriv"):
            self.skipTest("no setpriv, which takes root's rights")
        return mneme(*words, before=["setpriv", "--bounding-set=-dac_override,-dac_read_search"])

    def states(self, folder):
        """Names and contents of all readable files."""
        states = {}
        for where, _, names in os.walk(folder):
            for name in names:
                with open(os.path.join(where, name), "rb") as file:
                    states[os.path.join(where, name)] = file.read()
        return states

    def test_a_sweep_names_read_only_folders_and_keeps_its_results(self):
        scenario, out = self.scenario(), self.path("runs")

        def sweep(seeds, *words):
            return self.without_rights("sweep", scenario, "--seeds", seeds, "--out", out, *words)

        def locked(path, mode=0o555):
            os.chmod(path, mode)
            self.addCleanup(os.chmod, path, 0o755)
        os.mkdir(out)
        locked(out)
        cannot = f"error: --out '{out}' is not writable: Permission denied; choose another folder\n"
        done = sweep("1,2")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", cannot))
        os.chmod(out, 0o755)
        done = sweep("1,2", "--quiet")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        before = self.states(out)

        locked(out)  # existing runs can be read, but none can be started
        done = sweep("1,2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("2 runs, 2 of them done before", done.stdout)
        done = sweep("1-3")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", cannot))
        self.assertEqual(self.states(out), before)

        os.chmod(out, 0o755)
        for mode in (0o444, 0o000):  # the runs contain everything that the catalogue has
            locked(self.path("runs", "catalogue.sqlite"), mode)
            done = sweep("1,2")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("2 runs, 2 of them done before", done.stdout)
        os.chmod(self.path("runs", "catalogue.sqlite"), 0o644)

        first = next(name for name in self.names("runs") if "-s1-" in name)
        os.remove(self.path("runs", first, "summary.json"))
        before = self.states(self.path("runs", first))
        locked(self.path("runs", first))
        done = sweep("1,3")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("1 runs done, 1 failed", done.stdout)
        self.assertRegex(done.stderr,
                         f"error: .* seed=1: cannot remove '{self.path('runs', first)}/.*': Permission denied")
        self.assertEqual(self.states(self.path("runs", first)), before)
        os.chmod(self.path("runs", first), 0o755)
        done = sweep("1-3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("3 runs done, 0 failed", done.stdout)


if __name__ == "__main__":
    run_tests()
