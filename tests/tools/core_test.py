"""The program without optional parts (mneme_core): equal digests, and refusals that name the CMake switch."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, mneme, run_tests  # noqa: E402

CORE = os.path.join(os.path.dirname(PROGRAM), "mneme_core")


class Core(unittest.TestCase):
    def run_program(self, program, scenario, *settings):
        """Returns the completed process, and the run digest; None if the run failed."""
        with tempfile.TemporaryDirectory() as folder:
            done = mneme("run", scenario, *settings, "--quiet", "--out", folder + "/run", program=program)
            if done.returncode != 0:
                return done, None
            with open(folder + "/run/summary.json", encoding="utf-8") as file:
                return done, json.load(file)["run_digest"]

    def test_the_core_has_the_digests_of_the_full_program(self):
        for name in ("fedavg", "fedasync", "stsa", "osi-fl"):
            scenario = f"scenarios/smoke/{name}.toml"
            done, digest = self.run_program(CORE, scenario)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(digest, self.run_program(PROGRAM, scenario)[1], name)

    def test_a_scenario_that_needs_an_absent_part_is_refused_with_its_switch(self):
        for name, settings, place, switch in (
                ("module", (), "module.toml:", "MNEME_MODULES=ON"),
                ("exported", (), "exported.toml:", "MNEME_MODULES=ON"),
                ("osi-fl-parts", (), "osi-fl-parts.toml:", "MNEME_MODULES=ON"),
                ("fedavg", ("--set", 'worker.arithmetic="portable"'), "", "MNEME_PORTABLE=ON")):
            done, _ = self.run_program(CORE, f"scenarios/smoke/{name}.toml", *settings)
            self.assertEqual(done.returncode, 2, name + done.stderr)
            self.assertIn(switch, done.stderr)
            self.assertIn(place, done.stderr)

    def test_runs_on_several_processes_are_refused_with_the_switch(self):
        for words in (["run", "scenarios/smoke/fedavg.toml", "--accept", "127.0.0.1:0"],
                      ["run", "scenarios/smoke/fedavg.toml", "--distributed"],
                      ["resume", "runs/none", "--distributed"], ["node", "--join", "127.0.0.1:1"],
                      ["node", "--make-keys", "keys"]):
            done = mneme(*words, program=CORE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("this build has no cluster support; build with -DMNEME_NODES=ON", done.stderr)

    def test_pages_are_refused_with_the_switch(self):
        for words in (["--serve", "0"], ["--metrics", "127.0.0.1:0"]):
            done = mneme("run", "scenarios/smoke/fedavg.toml", *words, program=CORE)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn("this build serves no pages; build with -DMNEME_LIVE=ON", done.stderr)


if __name__ == "__main__":
    run_tests()
