"""Clients' own models of Python methods, traffic of servers that send no weights, and mneme.partition()."""
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import python_methods  # noqa: E402
import torch  # noqa: E402
from python_package import scenario  # noqa: E402
from trial_methods import Clusters  # noqa: E402


class Silent(mneme.Method):
    """Uploads without a model."""
    name = "py-silent"

    def client_round(self, ctx, broadcast):
        return mneme.Upload(tensors={"count": torch.ones(1)}, rows=len(ctx.rows))

    class Server(mneme.Server):
        def fold(self, upload):
            pass

        def close_round(self):
            pass


class Personal(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.count = scratch.name, 0

    def run_of(self, name, personal, threads=2, **keys):
        self.count += 1
        return mneme.run(scenario(name, evaluation={"personal": personal, **keys}), threads=threads, quiet=True,
                         methods=[Clusters, Silent, python_methods.FedAvg], out=f"{self.folder}/{self.count}")

    def rows(self, run):
        tests = run.client_accuracy
        return tests.to_dict("records") if hasattr(tests, "to_dict") else tests

    def test_a_python_method_is_tested_like_the_built_in_one(self):
        for personal in ("fine-tuned", "local"):
            native, written = (self.run_of(name, personal) for name in ("fedavg", "py-fedavg"))
            self.assertEqual(native.digest, written.digest)
            self.assertEqual(self.rows(native), self.rows(written))
            self.assertGreater(len(self.rows(native)), 12)

    def test_the_model_of_a_clients_cluster_is_tuned_and_only_clusters_are_sent(self):
        run = self.run_of("py-ifca", "fine-tuned")
        again = self.run_of("py-ifca", "fine-tuned", threads=3)
        self.assertEqual((run.digest, self.rows(run)), (again.digest, self.rows(again)))
        size = sum(tensor.numel() for tensor in run.model().values())
        clients = run.summary["client_rounds"]
        self.assertEqual(run.summary["download_bytes"], clients * 2 * size * 4)  # two clusters, without the weights
        self.assertEqual(run.summary["upload_bytes"], clients * (size + 1) * 4)

    def test_uploads_without_a_model_fail_with_the_reason(self):
        with self.assertRaisesRegex(mneme.RunFailed, "evaluation.personal: client [0-9]+: the upload has no tensor"):
            self.run_of("py-silent", "local")

    def test_a_partition_counts_rows_of_each_class(self):
        plan = scenario("fedavg", partition={"kind": "iid"})
        shown = mneme.partition(plan)
        self.assertEqual((len(shown.rows), len(shown.classes)), (12, 10))
        self.assertEqual(str(shown).splitlines()[0].split(), ["client", *shown.classes, "rows"])
        self.assertEqual([int(word) for word in str(shown).splitlines()[1].split()],
                         [0, *shown.rows[0], sum(shown.rows[0])])
        self.assertIn(f">{shown.rows[3][2]}</td>", shown._repr_html_())
        self.assertEqual(len(mneme.partition(plan, {"clients.count": 5, "rounds.cohort": 5}).rows), 5)
        self.assertEqual(mneme.partition(plan, {"data.seed": 4}).rows, mneme.partition(plan, {"seed": 4}).rows)
        with self.assertRaisesRegex(mneme.ScenarioError, "partition.beta"):
            mneme.partition(plan, {"partition": {"kind": "dirichlet", "beta": -1.0}})
        with unittest.mock.patch.dict(sys.modules, {"matplotlib": None}), \
                self.assertRaisesRegex(ImportError, "pip install matplotlib"):
            shown.plot()


if __name__ == "__main__":
    python_package.run_tests()
