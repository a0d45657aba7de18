"""Valid inputs for all readers of the program, each with the command that reads it."""
import copy
import gzip
import io
import json
import lzma
import os
import shutil
import struct
import subprocess
import zipfile

from array_bytes import Array, Packed, npy, png, write_safetensors
from checkpoint_bytes import with_checksum
from jpeg_bytes import small_jpeg

GOLDEN_IMAGES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tests", "golden", "images.json")
BASE = """seed = 1
[data]
{data}
[tasks]
kind = "single"
[clients]
count = 2
[rounds]
per_task = 2
[model]
name = "linear"
{model}
[partition]
{partition}
[devices]
{devices}
[strategy]
name = "fedavg"
"""
MADE = 'name = "synthetic"\nshape = [4]\nclasses = 3\nrows = 30'


def _scenario(data=MADE, model="", partition='kind = "iid"', devices=""):
    return BASE.format(data=data, model=model, partition=partition, devices=devices)


class ReaderCase:
    """Case of a reader. `honest`: valid bytes that are damaged and written to `target`; the program reads them with the
    arguments `words`."""
    limit_s = 60

    def __init__(self, folder, program, target, honest, words):
        self.folder, self.program = folder, program
        self.target, self.honest, self.words = os.path.join(folder, target), honest, words
        os.makedirs(os.path.dirname(self.target), exist_ok=True)

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(text if isinstance(text, bytes) else text.encode())
        return path

    def command(self, damaged):
        """Arguments with which the program reads the damaged bytes."""
        with open(self.target, "wb") as file:
            file.write(damaged)
        return self.words

    @property
    def runs(self):
        """True if the command starts a run."""
        return self.words[0] == "resume"

    @property
    def takes_several(self):
        """True if the command can read several inputs."""
        return self.words[0] == "validate"

    def wrong_result(self):
        """Checks the output of a command that ended with code 0. Returns a description of the fault, or None."""
        return None

    def is_answered(self, said, inputs):
        """True if the output accepts this input or states why it is rejected."""
        mine = [line for line in said.splitlines() if inputs == 1 or self.folder + os.sep in line]
        return any("error: " in line or line.endswith(": ok") for line in mine)


def _idx_images(rows, side):
    return struct.pack(">IIII", 0x803, rows, side, side) + bytes(i % 251 for i in range(rows * side * side))


def _idx_labels(rows):
    return struct.pack(">II", 0x801, rows) + bytes(i % 10 for i in range(rows))


class _WithScenario(ReaderCase):
    def __init__(self, folder, program, target, honest, scenario, beside=()):
        super().__init__(folder, program, target, honest, ["validate", os.path.join(folder, "s.toml")])
        self._write("s.toml", scenario)
        for name, content in beside:
            self._write(name, content)


def toml_case(folder, program):
    return ReaderCase(folder, program, "s.toml", _scenario(MADE, 'trainable = "head"').encode(),
                      ["validate", os.path.join(folder, "s.toml")])


def safetensors_case(folder, program):
    header = json.dumps({"fc.weight": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]},
                         "fc.bias": {"dtype": "F32", "shape": [3], "data_offsets": [48, 60]}}).encode()
    honest = struct.pack("<Q", len(header)) + header + struct.pack("<15f", *range(15))
    return _WithScenario(folder, program, "w.safetensors", honest, _scenario(model='weights = "w.safetensors"'))


def _idx_case(folder, program, packed_name, pack):
    scenario = _scenario(data=f'name = "mnist"\nroot = "{folder}"')
    images = {"train-images-idx3-ubyte": _idx_images(20, 28), "t10k-images-idx3-ubyte": _idx_images(10, 28),
              "t10k-labels-idx1-ubyte": _idx_labels(10)}
    labels = pack(_idx_labels(20))
    return _WithScenario(folder, program, "train-labels-idx1-ubyte" + packed_name, labels, scenario, images.items())


def idx_case(folder, program):
    return _idx_case(folder, program, "", lambda data: data)


def gz_case(folder, program):
    return _idx_case(folder, program, ".gz", gzip.compress)


def xz_case(folder, program):
    return _idx_case(folder, program, ".xz", lzma.compress)


def xz_streams_case(folder, program):
    return _idx_case(folder, program, ".xz", lambda data: lzma.compress(data[:9]) + bytes(8) + lzma.compress(data[9:]))


def idx_images_case(folder, program):
    scenario = _scenario(data=f'name = "mnist"\nroot = "{folder}"')
    beside = {"train-labels-idx1-ubyte": _idx_labels(20), "t10k-images-idx3-ubyte": _idx_images(10, 28),
              "t10k-labels-idx1-ubyte": _idx_labels(10)}
    return _WithScenario(folder, program, "train-images-idx3-ubyte.gz", gzip.compress(_idx_images(20, 28)), scenario,
                         beside.items())


def cifar_case(folder, program):
    records = b"".join(bytes([row % 10]) + bytes(i % 256 for i in range(3072)) for row in range(10))
    beside = {f"data_batch_{n}.bin": records for n in range(2, 6)} | {"test_batch.bin": records}
    return _WithScenario(folder, program, "data_batch_1.bin", records,
                         _scenario(data=f'name = "cifar10"\nroot = "{folder}"'), beside.items())


def pacs_case(folder, program):
    records = b"".join(bytes([row % 4, row % 7]) + bytes(i % 256 for i in range(3072)) for row in range(140))
    return _WithScenario(folder, program, "pacs32.bin", records, _scenario(data=f'name = "pacs"\nroot = "{folder}"'))


def jpeg_case(folder, program):
    names = [f"n0000000{n}" for n in range(3)]
    beside = {"wnids.txt": "\n".join(names) + "\n"}
    for name in names:
        beside[f"train/{name}/images/{name}_0.JPEG"] = small_jpeg(64)
        beside[f"val/images/val_{name}.JPEG"] = small_jpeg(64)
    beside["val/val_annotations.txt"] = "".join(f"val_{name}.JPEG\t{name}\t0\t0\t62\t62\n" for name in names)
    return _WithScenario(folder, program, f"train/{names[0]}/images/{names[0]}_1.JPEG", small_jpeg(64),
                         _scenario(data=f'name = "tiny-imagenet"\nroot = "{folder}"'), beside.items())


def lists_case(folder, program):
    made = jpeg_case(folder, program)
    made.command(made.honest)  # writes the image
    annotations = os.path.join(folder, "val", "val_annotations.txt")
    with open(annotations, "rb") as file:
        honest = file.read()
    return ReaderCase(folder, program, "val/val_annotations.txt", honest, made.words)


def _own_rows():
    """Numbers of three classes in the format of data.name = "arrays"."""
    return {"train_x": Array("float32", [12, 3], [row * 0.5 + i for row in range(12) for i in range(3)]),
            "train_y": Array("int64", [12], [row % 3 for row in range(12)]),
            "test_x": Array("float32", [6, 3], [row * 0.25 - i for row in range(6) for i in range(3)]),
            "test_y": Array("int64", [6], [row % 3 for row in range(6)])}


def _npz_case(packing):
    def made(folder, program):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", packing) as archive:
            for name, array in _own_rows().items():
                archive.writestr(zipfile.ZipInfo(name + ".npy"), npy(array), packing)
        return _WithScenario(folder, program, "a.npz", packed.getvalue(),
                             _scenario(data='name = "arrays"\nfile = "a.npz"'))
    return made


npz_case = _npz_case(zipfile.ZIP_STORED)
packed_npz_case = _npz_case(zipfile.ZIP_DEFLATED)


def npy_case(folder, program):
    arrays = {name + ".npy": npy(array) for name, array in _own_rows().items()}
    honest = arrays.pop("train_x.npy")
    return _WithScenario(folder, program, "train_x.npy", honest,
                         _scenario(data='name = "arrays"\nfile = "train_x.npy"'), arrays.items())


def own_safetensors_case(folder, program):
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "a.safetensors")
    write_safetensors(path, _own_rows())
    with open(path, "rb") as file:
        honest = file.read()
    return _WithScenario(folder, program, "a.safetensors", honest,
                         _scenario(data='name = "arrays"\nfile = "a.safetensors"'))


def csv_case(folder, program):
    table = "label,a,b,domain,split\n" + "".join(
        f"{'xyz'[row % 3]},{row * 0.5},{-row},{'pq'[row // 3 % 2]},{'test' if row > 11 else 'train'}\n"
        for row in range(18))
    return _WithScenario(folder, program, "t.csv", table.encode(), _scenario(data='name = "csv"\nfile = "t.csv"'))


def quoted_csv_case(folder, program):
    labels = ['"5"" disc"', '"a; b"', "-1.50"]
    table = ';label;a;"b ""c"""\r\n' + "".join(
        f'{row};{labels[row % 3]};"{row * 0.5}";{-row}e-3\r\n' for row in range(18))
    return _WithScenario(folder, program, "t.csv", table.encode(), _scenario(
        data='name = "csv"\nfile = "t.csv"\ntest_share = 0.2\nignore_columns = [""]\nnormalize = "unit"'))


def png_folder_case(folder, program):
    picture = png(8, 8, [bytes(i * 3 for i in range(64))])
    beside = {f"p/{split}/{name}/{number}.png": picture for split in ("train", "test") for name in "xyz"
              for number in range(2)}
    return _WithScenario(folder, program, "p/train/x/0.png", picture, _scenario(data='name = "folder"\nroot = "p"'),
                         beside.items())


def _golden_image_case(name):
    """Case of a folder of images that Pillow, OpenCV and torchvision can read; one of them is damaged."""
    def made(folder, program):
        with open(GOLDEN_IMAGES, encoding="utf-8") as file:
            image = next(bytes.fromhex(entry["file"]) for entry in json.load(file)["images"] if entry["name"] == name)
        beside = {f"p/{split}/{label}/{number}.png": image for split in ("Training", "Testing") for label in "xyz"
                  for number in range(2)}
        return _WithScenario(folder, program, "p/Training/x/0.png", image,
                             _scenario(data='name = "folder"\nroot = "p"\nside = 8'), beside.items())
    return made


palette_png_case = _golden_image_case("palette-4-adam7")
deep_png_case = _golden_image_case("rgba-16-adam7")
progressive_jpeg_case = _golden_image_case("jpeg-progressive")
ycck_jpeg_case = _golden_image_case("jpeg-ycck")


def high_bytes_npy_case(folder, program):
    arrays = {name + ".npy": npy(array) for name, array in _own_rows().items()}
    values = struct.pack(">12q", *(row % 3 for row in range(12)))
    honest = npy(Packed("int64", [12], values)).replace(b"<i8", b">i8").replace(b"False, ", b"True,  ")
    del arrays["train_y.npy"]
    return _WithScenario(folder, program, "train_y.npy", honest,
                         _scenario(data='name = "arrays"\nfile = "train_y.npy"'), arrays.items())


def partition_case(folder, program):
    csv = "client,row,task\n" + "".join(f"{row % 2},{row},1\n" for row in range(30))
    return _WithScenario(folder, program, "p.csv", csv.encode(),
                         _scenario(partition='kind = "file"\nfile = "p.csv"'))


def availability_case(folder, program):
    csv = "client,from,to\n" + "".join(f"{client},{start},{start + 40}\n" for client in range(2)
                                       for start in (0, 100, 200.5))
    return _WithScenario(folder, program, "a.csv", csv.encode(),
                         _scenario(devices='availability = "file"\navailability_file = "a.csv"'))


def links_case(folder, program):
    csv = "client,from,to,uplink_mbit,downlink_mbit\n" + "".join(
        f"{client},{start},{start + 90},1,2.5\n" for client in range(2) for start in (0, 100, 200.5))
    return _WithScenario(folder, program, "l.csv", csv.encode(),
                         _scenario(devices='link_file = "l.csv"\ntrace_end = "repeat"'))


def capacity_case(folder, program):
    return _WithScenario(folder, program, "c.csv", b"client,rows_per_second,uplink_mbit\n0,10,\n1,2e1,0.5\n",
                         _scenario(devices='capacity_file = "c.csv"'))


SMOKE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios", "smoke")
MODULE = os.path.join(SMOKE, "tiny.pt2")
IMAGES = 'name = "synthetic"\nshape = [3, 10, 10]\nclasses = 3\nrows = 30'


def module_case(folder, program):
    with open(MODULE, "rb") as file:
        honest = file.read()
    return _WithScenario(folder, program, "net.pt2", honest, _scenario(IMAGES, 'module = "net.pt2"'))


class _ForgedModuleCase(_WithScenario):
    """Case that damages an entry of an archive and repacks it with valid checksums."""

    def __init__(self, folder, program, ending):
        with zipfile.ZipFile(MODULE) as archive:
            self._entries = {name: archive.read(name) for name in archive.namelist()}
        self._damaged = next(name for name in self._entries if name.endswith(ending))
        super().__init__(folder, program, "net.pt2", self._entries[self._damaged],
                         _scenario(IMAGES, 'module = "net.pt2"'))

    def command(self, damaged):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for name, content in {**self._entries, self._damaged: bytes(damaged)}.items():
                archive.writestr(zipfile.ZipInfo(name), content)
        return super().command(packed.getvalue())


def forged_module_program_case(folder, program):
    return _ForgedModuleCase(folder, program, "models/model.json")


class _RunFolderCase(ReaderCase):
    """Case of a file of an interrupted run. Each command reads a fresh copy of the run folder."""
    limit_s = 5  # a damaged number of rounds can make a short run long; it ends when interrupted

    def __init__(self, folder, program, named=None, mend=None, smoke=None, method="fed-ewc", more=()):
        self._mend = mend or (lambda data: data)
        self.is_forged = mend is not None
        kept = os.path.join(folder, "kept")
        shutil.rmtree(kept, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)
        scenario = os.path.join(SMOKE, f"{smoke}.toml") if smoke else os.path.join(folder, "s.toml")
        if smoke is None:
            with open(scenario, "w", encoding="utf-8") as file:
                file.write(_scenario().replace("fedavg", method).replace('"single"', '"class-incremental"\ncount = 3'))
        subprocess.run([program, "run", scenario, "--quiet", "--trace", "--out", kept, "--threads", "1", "--set",
                        "checkpoint.force=true", *[word for key in more for word in ("--set", key)]],
                       check=True, capture_output=True)
        self.digest = _digest_in(kept)
        for name in ("summary.json", "model.safetensors"):
            os.remove(os.path.join(kept, name))
        checkpoints = sorted(name for name in os.listdir(os.path.join(kept, "checkpoint"))
                             if name.endswith(".checkpoint"))
        for name in checkpoints[1:]:  # after the oldest checkpoint, the run still has a round to compute
            os.remove(os.path.join(kept, "checkpoint", name))
        self._kept = _files_below(kept)
        named = os.path.join("checkpoint", named or checkpoints[0])
        super().__init__(folder, program, os.path.join("run", named), self._kept[named],
                         ["resume", os.path.join(folder, "run"), "--quiet", "--threads", "1"])

    def beside(self, folder):
        """Returns a case of the same run in another folder."""
        other = copy.copy(self)
        other.folder = folder
        other.target = os.path.join(folder, os.path.relpath(self.target, self.folder))
        other.words = ["resume", os.path.join(folder, "run"), *self.words[2:]]
        return other

    def command(self, damaged):
        run = os.path.join(self.folder, "run")
        shutil.rmtree(run, ignore_errors=True)
        os.makedirs(os.path.join(run, "checkpoint"))
        for name, content in self._kept.items():
            with open(os.path.join(run, name), "wb") as file:
                file.write(content)
        return super().command(self._mend(damaged))

    def wrong_result(self):
        """Checks a run that ended with code 0. Returns a description of the fault, or None. If the checksum
        was recomputed, damage may change results."""
        digest = _digest_in(os.path.join(self.folder, "run"))
        if digest is None:
            return "code 0, but no summary"
        return None if self.is_forged or digest == self.digest else f"code 0, but digest {digest} and not {self.digest}"


def _digest_in(folder):
    try:
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["run_digest"]
    except OSError:
        return None


def _files_below(folder):
    """Returns {path: content} of the files of a folder and its direct subfolders."""
    files = {}
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                files[os.path.relpath(os.path.join(path, name), folder)] = file.read()
    return files


def run_json_case(folder, program):
    return _RunFolderCase(folder, program, "run.json")


def torn_checkpoint_case(folder, program):
    return _RunFolderCase(folder, program)


def forged_checkpoint_case(folder, program):
    """Case of a damaged checkpoint with a valid checksum, so that only checks of sizes, ids and counts protect
    memory."""
    return _RunFolderCase(folder, program, mend=with_checksum)


def _forged_tiny_case(method, *more):
    """Like forged_checkpoint_case(), for a run so small that its checkpoint has more structure than values."""
    return lambda folder, program: _RunFolderCase(folder, program, mend=with_checksum, method=method, more=more)


forged_memories_of_tiny_er_case = _forged_tiny_case("er")
forged_memories_of_tiny_scaffold_case = _forged_tiny_case("scaffold")
forged_memories_of_tiny_stsa_case = _forged_tiny_case("stsa", "strategy.projection_width=8",
                                                          "strategy.adaptation_rounds=1")
forged_memories_of_tiny_fed_il_plus_case = _forged_tiny_case("fed-il-plus")
forged_memories_of_tiny_moon_case = _forged_tiny_case("moon", "model.name=mlp", "model.hidden=[4, 3]")
forged_memories_of_tiny_buffered_case = _forged_tiny_case("fedavg", "rounds.mode=async", "rounds.buffer=2",
                                                          "rounds.concurrency=2", "clients.count=4")


def _forged_smoke_case(smoke, *more):
    """Forged checkpoints of small runs, with the memories of clients, server and proxy of a method."""
    sizes = ("data.rows=60", *more)
    return lambda folder, program: _RunFolderCase(folder, program, mend=with_checksum, smoke=smoke, more=sizes)


SHORT = ("tasks.count=2", "clients.count=3", "rounds.cohort=2")
forged_memories_of_fil_ver_case = _forged_smoke_case(
    "fil-ver", "tasks.count=2", "clients.count=4", 'enrolment.table=["AA", "AO"]', "rounds.per_task=2",
    "model.hidden=[4]", "model.embedding=3", "model.classifier=[4]", "strategy.pool_size=10",
    "strategy.server_batch=4", "strategy.server_steps=2", "strategy.vee_epochs=1")
forged_memories_of_lga_case = _forged_smoke_case(
    "lga", *SHORT, "data.classes=6", "enrolment.initial=2", "rounds.per_task=2", "training.epochs=1",
    "strategy.memory=6", "strategy.reconstruction_steps=2", "strategy.images_per_gradient=1")
forged_memories_of_fedhaf_case = _forged_smoke_case(
    "fedhaf", *SHORT, "data.classes=4", "model.hidden=[6]", "strategy.adjustment_hidden=[4]",
    "strategy.adjustment_width=3", "strategy.head_width=3")
forged_memories_of_stsa_case = _forged_smoke_case(
    "stsa_estimated", *SHORT, "strategy.adaptation_rounds=1", "strategy.projection_width=8", "strategy.dummies=2",
    "model.hidden=[4]")
forged_memories_of_osi_fl_case = _forged_smoke_case(
    "osi-fl", "training.epochs=1", "strategy.images=2", "strategy.sampling_steps=2", "strategy.encoder_passes=1",
    "strategy.denoiser_passes=1", "strategy.component_passes=1", "strategy.generator_batch=8",
    "strategy.components=4")

CASES = {name[:-len("_case")]: made for name, made in list(globals().items())
         if name.endswith("_case") and not name.startswith("_")}
