"""tools/research/repeats: its table for given models."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

FOLDER = os.path.join(ROOT, "tools", "research", "repeats")


def loaded():
    loader = importlib.machinery.SourceFileLoader("repeats_run", os.path.join(FOLDER, "run"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


REPEATS = loaded()


class Unsteady:
    """Fake framework: equal models with one thread, different ones with more; resumes exactly; the order varies."""
    name = "unsteady"

    def model(self, threads):
        return f"{threads:08d}"

    def resumed(self):
        return self.model(2)

    def by_order(self):
        return [self.model(2), "another1"]


class Repeats(unittest.TestCase):
    def test_verdicts_count_models_that_differ_from_the_first(self):
        self.assertEqual(REPEATS.verdict(["a", "a", "a"]), "same")
        self.assertEqual(REPEATS.verdict(["a", "b", "a", "c"]), "different (2 of 3)")

    def test_each_line_of_the_table_compares_its_own_runs(self):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            lines = REPEATS.compared(Unsteady())
        self.assertEqual(lines, {"repeats, one thread": "same", "repeats, two threads": "same",
                                 "1, 2 and 4 threads": "different (2 of 2)", "kill and resume": "same",
                                 "order of arrival": "different (1 of 2)"})
        self.assertIn("unsteady, 1, 2 and 4 threads: 00000001 00000002 00000004", told.getvalue())

    def test_the_second_order_delays_the_other_clients(self):
        delays = REPEATS.federation.DELAYS
        clients = range(REPEATS.federation.CLIENTS)
        self.assertEqual([delays["rising"](client) for client in clients],
                         [delays["falling"](client) for client in reversed(clients)])
        self.assertEqual({delays["none"](client) for client in clients}, {0.0})


if __name__ == "__main__":
    run_tests()
