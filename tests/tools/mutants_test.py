"""The mutants of tools/mutate apply to the tree, so that the slow tests can plant them; each group has enough."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "checks"))
import mutants  # noqa: E402

MUTATE = os.path.join(ROOT, "tools", "mutate")
PLANTED_MIN = {"methods": 60, "federation": 30}
SURVIVORS_MAX = 5


def mutate(*arguments):
    return subprocess.run([sys.executable, MUTATE, *arguments], capture_output=True, text=True)


@unittest.skipIf(mutants.tomllib is None, "needs tomllib of Python 3.11")
class Mutants(unittest.TestCase):
    def test_every_entry_applies_exactly_once(self):
        names = []
        for group in mutants.GROUPS:
            table = mutants.table_of(group)
            self.assertGreaterEqual(len(table), PLANTED_MIN[group])
            for mutant in table:
                names.append(mutant["name"])
                with self.subTest(mutant["name"]):
                    self.assertEqual(mutants.wrong_with(group, mutant), [])
        self.assertEqual(len(names), len(set(names)))

    def test_few_mutants_survive_and_each_has_a_reason(self):
        reasons = [mutant["survives"] for group in mutants.GROUPS for mutant in mutants.table_of(group)
                   if "survives" in mutant]
        self.assertLessEqual(len(reasons), SURVIVORS_MAX)
        self.assertTrue(all(len(reason.split()) > 5 for reason in reasons))

    def test_an_outdated_entry_is_named_with_the_current_location_of_its_text(self):
        with tempfile.TemporaryDirectory() as tree:
            for folder in ("strategies", "tests/strategies/a"):
                os.makedirs(os.path.join(tree, folder))
            for name, text in (("strategies/a.cpp", "x = 1;\nx = 1;\n"), ("strategies/b.cpp", "y = 2;\n"),
                               ("tests/strategies/a/a_test.cpp", "")):
                with open(os.path.join(tree, name), "w", encoding="utf-8") as file:
                    file.write(text)

            def wrong(**changed):
                entry = {"name": "m", "file": "strategies/a.cpp", "old": "x", "new": "z", "tests": ["a_test"]}
                return mutants.wrong_with("methods", {**entry, **changed}, tree)

            self.assertEqual(wrong(), ["m: `old` occurs 2 times in strategies/a.cpp, expected once; it occurs in "
                                       "strategies/a.cpp"])
            self.assertEqual(wrong(old="y = 2;"), ["m: `old` occurs 0 times in strategies/a.cpp, expected once; it "
                                                   "occurs in strategies/b.cpp"])
            self.assertEqual(wrong(file="strategies/b.cpp", old="y", new="y", tests=["c_test"]),
                             ["m: `new` changes nothing", "m: there is no c_test.cpp below tests/strategies/"])
            self.assertIn("unknown key reason", wrong(reason="none")[0])
            mutant = {"file": "strategies/b.cpp", "old": "y", "new": "z"}
            mutants.plant(tree, mutant)
            self.assertEqual(mutants.read_text(tree, "strategies/b.cpp"), "z = 2;\n")

    def test_mutant_names_are_listed_and_unknown_ones_refused(self):
        listed = mutate("--list", "methods").stdout.split()
        self.assertIn("ewc-blend-is-exchanged", listed)
        self.assertNotIn("a-late-upload-is-lost", listed)
        refused = mutate("no-such-mutant")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("unknown mutant no-such-mutant", refused.stderr)


if __name__ == "__main__":
    run_tests()
