"""Eight usual methods in Python: lengths, equal digests with any number of threads, and resumption."""
import inspect
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
import trial_methods as trial  # noqa: E402
from python_package import scenario  # noqa: E402

# Lines of each method without its docstring, at most.
LINES_MAX = {trial.FedAvg: 10, trial.Ewc: 15, trial.MeanTeacher: 15, trial.Icarl: 45, trial.Clusters: 36,
             trial.UserPrivacy: 22, trial.TopK: 25, trial.Buffered: 20}
ASYNC = {"mode": "async", "buffer": 3, "concurrency": 6}


def code_lines(method):
    text = inspect.getsource(method).replace(f'"""{method.__doc__}"""', "")
    return sum(bool(line.strip()) for line in text.splitlines())


class Stop(Exception):
    """Stops a run after an evaluation."""


class Trial(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.count = scratch.name, 0

    def run_of(self, chosen, threads=2, **options):
        self.count += 1
        return mneme.run(chosen, methods=trial.ALL, threads=threads, quiet=True, out=f"{self.folder}/{self.count}",
                         **options)

    def check(self, method, **sections):
        """Runs the method with 1, 2 and 4 threads, and stopped after two evaluations and resumed."""
        self.assertLessEqual(code_lines(method), LINES_MAX[method])
        chosen = scenario(method.name, **sections)
        runs = [self.run_of(chosen, threads=threads) for threads in (1, 2, 4)]
        self.assertEqual({run.digest for run in runs}, {runs[0].digest})
        seen = []

        def stop(record):
            seen.append(record)
            if len(seen) == 2:
                raise Stop

        with self.assertRaises(Stop):
            self.run_of(chosen, on_evaluation=stop)
        resumed = mneme.resume(f"{self.folder}/{self.count}", methods=trial.ALL, quiet=True)
        self.assertEqual((resumed.status, resumed.digest), ("done", runs[0].digest))
        for record in resumed.records:
            self.assertTrue(record["loss"] < 10.0, record)
        return runs[0]

    def change(self, run):
        """The largest difference between the models of the run and of FedAvg."""
        plain = self.run_of(scenario("py-fedavg")).model()
        return max(float((run.model()[name] - value).abs().max()) for name, value in plain.items())

    def test_fedavg(self):
        self.assertEqual(self.change(self.check(trial.FedAvg)), 0.0)

    def test_ewc_is_a_penalty(self):
        run = self.check(trial.Ewc)
        self.assertGreater(self.change(run), 0.0)
        free = self.run_of(scenario("trial-ewc"), overrides={"strategy.strength": 0.0})
        self.assertLess(self.change(free), 1e-6)

    def test_fedprox_with_a_mean_teacher(self):
        run = self.check(trial.MeanTeacher)
        model = sum(tensor.numel() for tensor in run.model().values())
        self.assertEqual(run.summary["download_bytes"], 2 * 4 * model * run.summary["client_rounds"])

    def test_herded_exemplars(self):
        self.assertGreater(self.change(self.check(trial.Icarl)), 0.0)

    def test_ifca_with_personal_evaluation(self):
        run = self.check(trial.Clusters, evaluation={"personal": "fine-tuned"})
        self.assertGreater(len(run.client_accuracy), 12)

    def test_user_level_privacy(self):
        run = self.check(trial.UserPrivacy)
        self.assertGreater(self.change(run), 0.0)
        quiet = self.run_of(scenario("trial-user-privacy"), overrides={"strategy.noise": 0.0})
        native = self.run_of(scenario("fedavg", uploads={"clip_norm": 0.5}, strategy={"name": "fedavg",
                                                                                     "weighting": "uniform"}))
        for name, tensor in native.model().items():
            torch.testing.assert_close(quiet.model()[name], tensor, rtol=1e-4, atol=1e-6)

    def test_top_k_with_error_feedback(self):
        run = self.check(trial.TopK)
        model = sum(tensor.numel() for tensor in run.model().values())
        self.assertLess(run.summary["upload_bytes"], 0.2 * 4 * model * run.summary["client_rounds"])
        whole = self.run_of(scenario("trial-top-k"), overrides={"strategy.share": 1.0})
        self.assertLess(self.change(whole), 1e-5)

    def test_fedbuff(self):
        run = self.check(trial.Buffered, rounds=ASYNC)
        native = self.run_of(scenario("fedavg", rounds={**ASYNC, "aggregation": "fedbuff", "staleness": "polynomial",
                                                        "staleness_exponent": 0.5, "server_learning_rate": 1.0},
                                      strategy={"name": "fedavg", "weighting": "uniform"}))
        for name, tensor in native.model().items():
            torch.testing.assert_close(run.model()[name], tensor, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    python_package.run_tests()
