"""Every smoke scenario has one digest for all threads, widths and thread settings of the machine, and one digest for
each choice of kernels, which may differ between kernels."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from placement_test import SETTINGS as KERNELS  # noqa: E402
from program import PROGRAM, ROOT, run_tests, thread_settings  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from started_programs import StartedPrograms  # noqa: E402

SMOKE = os.path.join(ROOT, "scenarios", "smoke")
LIMIT_S = 300
WAYS = [(threads, width) for threads in (1, 2, 3, 4) for width in (1, 2, 3, 7, 0)]  # width 0: automatic
KERNEL_WAYS = [(1, 1), (1, 3), (3, 7), (2, 0)]


class Digests(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.threads, cls.kernels = {}, {}
        for name, called in thread_settings().items():
            cores = {int(core) for core in called["before"][-1].split(",")} if "before" in called else None
            cls.threads[name] = cls.started(environment=called["environment"], cores=cores)
        for setting in KERNELS:
            cls.kernels[str(setting)] = cls.started(environment={**os.environ, **setting})

    @classmethod
    def started(cls, **how):
        return StartedPrograms(PROGRAM, cls.scratch.name, LIMIT_S, **how)

    @classmethod
    def tearDownClass(cls):
        for programs in (*cls.threads.values(), *cls.kernels.values()):
            programs.close()
        cls.scratch.cleanup()

    def digest(self, programs, scenario, threads, width):
        with tempfile.TemporaryDirectory(dir=self.scratch.name) as folder:
            out = os.path.join(folder, "run")
            ended = programs.run(["run", os.path.join(SMOKE, scenario), "--out", out, "--quiet", "--threads",
                                  str(threads), "--set", f"worker.fused_clients_max={width}"])
            self.assertEqual(ended.code, 0, ended.errors)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                return json.load(file)["run_digest"]

    def has_one_digest(self, scenario, settings, ways):
        digests = {}
        for setting, programs in settings.items():
            for threads, width in ways:
                found = self.digest(programs, scenario, threads, width)
                digests.setdefault(found, []).append(f"{setting}, {threads} threads, width {width}")
        self.assertEqual(len(digests), 1, digests)


def add(words, scenario):
    def by_threads(self):
        self.has_one_digest(scenario, self.threads, WAYS)

    def by_kernels(self):
        for setting, programs in self.kernels.items():
            with self.subTest(setting):
                self.has_one_digest(scenario, {setting: programs}, KERNEL_WAYS)

    setattr(Digests, f"test_{words}_whatever_the_threads", by_threads)
    setattr(Digests, f"test_{words}_with_each_choice_of_kernels", by_kernels)


for name in sorted(os.listdir(SMOKE)):
    if name.endswith(".toml"):
        add(name[:-5].replace("-", "_"), name)

if __name__ == "__main__":
    run_tests()
