"""Runs whose nodes are started by Dask and submitit: the digest of one process. The slow test uses Ray, too."""
import concurrent.futures
import contextlib
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
from program import ROOT, needs_nodes  # noqa: E402

setUpModule = needs_nodes


@contextlib.contextmanager
def dask_cluster(folder):
    """Two workers of a LocalCluster."""
    import distributed
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                  local_directory=folder) as cluster, distributed.Client(cluster) as client:
        yield mneme.cluster.Dask(client)


@contextlib.contextmanager
def submitit_cluster(folder):
    """Two jobs of submitit's local executor."""
    import submitit
    executor = submitit.AutoExecutor(os.path.join(folder, "jobs"), cluster="local")
    executor.update_parameters(timeout_min=10)
    yield mneme.cluster.Submitit(executor, nodes=2, threads_per_node=1)


class Launched(unittest.TestCase):
    scenarios = ()  # instead of one for each cluster

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def compare_with_one_process(self, started, *names):
        with contextlib.ExitStack() as stack:
            try:
                cluster = stack.enter_context(started(self.folder))
            except ModuleNotFoundError as error:
                self.skipTest(f"{error.name} is not installed (tools/bootstrap --launchers)")
            for name in self.scenarios or names:
                scenario = os.path.join(ROOT, "scenarios", "smoke", f"{name}.toml")
                alone = mneme.run(scenario, out=os.path.join(self.folder, name))
                apart = mneme.run(scenario, out=os.path.join(self.folder, name + "-nodes"), cluster=cluster)
                self.assertEqual(apart.digest, alone.digest, name)
                self.assertEqual([node["disconnects"] for node in apart.summary["nodes"]], [0, 0])
                self.assertGreaterEqual(sum(node["client_rounds"] for node in apart.summary["nodes"]),
                                        apart.summary["client_rounds"])

    def test_dask_gives_the_digest_of_one_process(self):
        self.compare_with_one_process(dask_cluster, "fedasync")

    def test_submitit_gives_the_digest_of_one_process(self):
        self.compare_with_one_process(submitit_cluster, "stsa")


class Threads(mneme.cluster.Cluster):
    """Nodes that threads of this process start."""

    def host(self):
        return "127.0.0.1"

    def start(self, address):
        pool = concurrent.futures.ThreadPoolExecutor(self.nodes)
        self.tasks = [pool.submit(mneme.cluster.compute, address, self.secret, 1, self.options)
                      for _ in range(self.nodes)]
        pool.shutdown(wait=False)

    def stop(self, wait_s):
        mneme.cluster.wait_until_done(self.tasks, wait_s)
        self.codes = [task.result() for task in self.tasks if task.done()]
        self.tasks = []


class Ends(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.join(scratch.name, "run")

    def test_a_run_whose_nodes_have_all_ended_is_stopped(self):
        cluster = Threads(2, options=("--grace", "soon"))  # a bad option
        with unittest.mock.patch.object(mneme.cluster, "END_OF_RUN_S", 1.0), \
                self.assertRaisesRegex(mneme.cluster.NodesEnded, "all 2 nodes .* exit code 2, exit code 2; expected"):
            mneme.run(os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), out=self.folder, cluster=cluster)
        self.assertEqual(cluster.codes, [2, 2])

    def test_nodes_end_with_a_scenario_that_has_errors(self):
        cluster = Threads(2)
        with self.assertRaises(mneme.ScenarioError):
            mneme.run(os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), {"rounds.cohort": -1}, out=self.folder,
                      cluster=cluster)
        self.assertEqual(cluster.codes, [2, 2])


if __name__ == "__main__":
    python_package.run_tests()
