"""The scenarios of the tree are valid."""
import concurrent.futures
import glob
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_data  # noqa: E402
from program import ROOT, data_found, mneme, needs_data, run_tests  # noqa: E402

FOLDER = os.path.join(ROOT, "scenarios")
SWEEPS = ["first_sight.toml"]  # grids of scenarios; sweep_test.py tests them
DEVICES = "devices"  # profiles, not scenarios
ALL = sorted({os.path.relpath(path, FOLDER) for path in glob.glob(os.path.join(FOLDER, "**", "*.toml"), recursive=True)}
             - set(SWEEPS))
ALL = [path for path in ALL if DEVICES not in path.split(os.sep)]


def data_name(path):
    """`data.name` of a scenario or of its base."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    section = re.search(r"^\[data\]\n(?:[^[\n][^\n]*\n|\n)*?name = \"([^\"]+)\"", text, re.M)
    if section:
        return section.group(1)
    base = re.search(r"^extends = \"([^\"]+)\"", text, re.M)
    return data_name(os.path.join(os.path.dirname(path), base.group(1))) if base else "fashion-mnist"


# Generated rows in the shape of data sets, since the data of many scenarios in paper/ are large or missing.
SYNTHETIC = {"cifar100": ([3, 32, 32], 100), "tiny-imagenet": ([3, 64, 64], 200), "imagenet-r": ([3, 48, 48], 200),
             "mini-imagenet": ([3, 84, 84], 100), "imagenet-subset": ([3, 16, 16], 1000),
             "emnist-balanced": ([1, 28, 28], 47), "mnist": ([1, 28, 28], 10), "shakespeare": ([80], 80)}
TOKENS = {"shakespeare": 80}
# Generated in files, since synthetic rows have no domains.
IN_FILES = {"digits", "emnist47", "pacs", "shakespeare-roles"}
PACKED = {"cifar100": "cifar100", "pacs": "osi-pacs"}  # slow to unpack, so only this scenario in base/ reads them
# Scenarios with a frozen net from a file.
BEHIND_FILES = re.compile(r"paper/(fedhaf_(?!.*_lander)|.*_efficientnet)|small/fedhaf_efficientnet")
PROMPTED = re.compile(r"paper/(fed-(codap|cprompt|dualp)|pilora|stsa(-e)?-(pilora|cprompt))_")
AT_ONCE = 30  # scenarios per process, which takes 0.2 s to start


def rows_made_up(shape, classes):
    """Returns a number of rows that suffices for the partition: few for large images, which are slow to generate."""
    return classes * {16: 2, 28: 40, 32: 40, 48: 1, 64: 10, 80: 40, 84: 2}[shape[-1]]


def reads_data(name):
    """True if a scenario is checked with its own data."""
    data = data_name(os.path.join(FOLDER, name))
    packed = data in PACKED and name != os.path.join("base", PACKED[data] + ".toml")
    spared = name.startswith("paper" + os.sep) or packed
    return data not in SYNTHETIC and data not in IN_FILES or data_found(data) and not spared


def checked_form(name, folder):
    """Returns the path of the scenario to check. Adds missing parts and generates rows, some of them in folder/data."""
    path = os.path.join(FOLDER, name)
    data, more = data_name(path), ""
    if "base" in name.split(os.sep)[:-1]:  # these scenarios name no method
        more += '[strategy]\nname = "fedavg"\n'
    if not reads_data(name):
        if data in IN_FILES:
            more += '[data]\nroot = "data"\n'
        else:
            shape, classes = SYNTHETIC[data]
            rows = rows_made_up(shape, classes)
            more += f'[data]\nname = "synthetic"\nshape = {shape}\nclasses = {classes}\nrows = {rows}\n'
        if data in TOKENS:
            more += f"tokens = {TOKENS[data]}\n"
        if PROMPTED.match(name):  # components of ten tasks in each of five blocks
            more += '[model]\ndepth = 5\nwidth = 192\nweights = "as-drawn"\n'
        elif "_vit_" in name:  # twelve blocks take ten seconds to initialize
            more += "[model]\ndepth = 1\n"
        if BEHIND_FILES.match(name):  # these files do not exist in the tree
            more += '[model]\nweights = "as-drawn"\n'
    if not more:
        return path
    changed = os.path.join(folder, re.sub(r"\W", "_", name) + ".toml")
    with open(changed, "w", encoding="utf-8") as file:
        file.write(f'extends = "{os.path.relpath(path, folder)}"\n{more}')
    return changed


class Scenarios(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Checks all scenarios whose data are available, several per process."""
        with tempfile.TemporaryDirectory() as folder:
            write_data(os.path.join(folder, "data"), *IN_FILES)
            there = [name for name in ALL if not reads_data(name) or data_found(data_name(os.path.join(FOLDER, name)))]
            paths = {name: checked_form(name, folder) for name in there}
            groups = [there[first:first + AT_ONCE] for first in range(0, len(there), AT_ONCE)]
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                said = list(pool.map(lambda group: mneme("validate", *(paths[name] for name in group)), groups))
        cls.verdicts = {name: (f"{paths[name]}: ok\n" in done.stdout, done.stdout + done.stderr)
                        for group, done in zip(groups, said) for name in group}

    def is_valid(self, name):
        if name not in self.verdicts:
            needs_data(self, data_name(os.path.join(FOLDER, name)))
        valid, said = self.verdicts[name]
        self.assertTrue(valid, said)

    def test_every_method_has_a_smoke_scenario(self):
        done = mneme("list", "--markdown", "strategies")
        self.assertEqual(done.returncode, 0, done.stderr)
        methods = re.findall(r"^\| `([\w-]+)`", done.stdout, re.M)
        self.assertGreater(len(methods), 0, done.stdout)
        self.assertEqual([name for name in methods if os.path.join("smoke", name + ".toml") not in ALL], [])


for scenario in ALL:
    words = re.sub(r"\W", "_", os.path.splitext(scenario)[0])
    setattr(Scenarios, f"test_{words}_is_valid", lambda self, name=scenario: self.is_valid(name))

if __name__ == "__main__":
    run_tests()
