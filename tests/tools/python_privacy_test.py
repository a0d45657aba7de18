"""mneme.privacy: epsilon equals dp-accounting's, and clear errors. It needs no engine."""
import importlib.util
import math
import os
import sys
import types
import unittest
from unittest import mock

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
spec = importlib.util.spec_from_file_location("privacy", os.path.join(ROOT, "tools", "python", "mneme", "privacy.py"))
privacy = importlib.util.module_from_spec(spec)
spec.loader.exec_module(privacy)
HAS_ACCOUNTING = importlib.util.find_spec("dp_accounting") is not None


def made_run(uploads, rounds=10, more=""):
    text = f"[clients]\ncount = 20\n[rounds]\ncohort = 2\n{more}[uploads]\n{uploads}"
    return types.SimpleNamespace(summary={"rounds": rounds}, records=[], scenario=lambda: text)


class Privacy(unittest.TestCase):
    @unittest.skipUnless(HAS_ACCOUNTING, "dp-accounting is not installed")
    def test_epsilon_equals_the_accountant(self):
        """The value of tests/runtime/method/privacy_test.cpp, from dp-accounting 0.6.0."""
        run = made_run("noise_multiplier = 1.0\ndelta = 1e-5\n")
        self.assertAlmostEqual(privacy.epsilon(run), 3.441642764041644, delta=3.5e-6)
        self.assertLess(privacy.epsilon(run, 1e-3), privacy.epsilon(run))

    @unittest.skipUnless(HAS_ACCOUNTING, "dp-accounting is not installed")
    def test_clients_that_come_and_go_and_local_noise_are_not_sampled(self):
        whole = privacy._epsilon_of(10, 1.0, "server", 1.0, None, 1e-5)
        run = made_run("noise_multiplier = 1.0\n", more="[enrolment]\nkind = \"random\"\n")
        self.assertEqual(privacy.epsilon(run), whole)
        self.assertEqual(privacy.epsilon(made_run("noise_multiplier = 2.0\nnoise = \"client\"\n")), whole)

    @unittest.skipUnless(HAS_ACCOUNTING, "dp-accounting is not installed")
    def test_tree_noise_depends_on_participations(self):
        run = made_run("noise_multiplier = 2.0\nnoise = \"tree\"\n", rounds=8)
        one = privacy._epsilon_of(1, 2.0 / math.sqrt(4), "server", 1.0, None, 1e-5)
        self.assertAlmostEqual(privacy.epsilon(run, participations=1), one)
        self.assertGreater(privacy.epsilon(run, participations=2), one)

    def test_bad_arguments_have_reasons(self):
        noisy = "noise_multiplier = 1.0\n"
        for run, options, text in ((made_run(""), {}, "no differential privacy"),
                                   (made_run(noisy), {"delta": 1.0}, "delta = 1.0"),
                                   (made_run(noisy), {"participations": 2}, "tree"),
                                   (made_run(noisy + "noise = \"tree\"\n"), {}, "participations"),
                                   (made_run(noisy + "noise = \"tree\"\n"), {"participations": 0}, "at least 1")):
            with self.assertRaisesRegex(ValueError, text):
                privacy.epsilon(run, **options)

    def test_a_missing_package_is_named(self):
        with mock.patch.dict(sys.modules, {"dp_accounting": None}):
            with self.assertRaisesRegex(ImportError, "pip install dp-accounting"):
                privacy.epsilon(made_run("noise_multiplier = 1.0\n"))


if __name__ == "__main__":
    unittest.main()
