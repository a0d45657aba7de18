"""A sweep of twenty runs over a pool of processes and over a cluster of Dask, a worker of which is killed: one table"""
import concurrent.futures
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
from python_package import scenario  # noqa: E402

OVER, SEEDS = {"strategy.name": ["fedavg", "fedprox"]}, list(range(1, 11))
BASE = scenario("fedavg", rounds={"per_task": 40})


def kill_once(pid_of_one, out):
    """Kills a worker when a few points have begun."""
    def watch():
        until = time.monotonic() + 120
        while time.monotonic() < until and len(mneme.runs(out)) < 4:
            time.sleep(0.02)
        os.kill(pid_of_one(), signal.SIGKILL)
    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def slow_start():
    """Of a worker: nothing; it says which process it is."""
    return os.getpid()


class Clusters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = scratch.name
        cls.alone = cls.swept("alone")

    @classmethod
    def swept(cls, name, executor=None):
        out = os.path.join(cls.folder, name)
        runs = mneme.sweep(BASE, OVER, SEEDS, out=out, executor=executor)
        table = mneme.compare(out, by="strategy.name", metric="final_accuracy")
        return [run.digest for run in runs], table.to_csv(index=False)

    def test_a_pool_of_processes_one_of_which_is_killed(self):
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            pool.submit(slow_start).result()
            killing = kill_once(lambda: next(iter(pool._processes)), os.path.join(self.folder, "pool"))
            self.assertEqual(self.swept("pool", pool), self.alone)
            killing.join()

    def test_a_cluster_of_dask_a_worker_of_which_is_killed(self):
        try:
            import distributed
        except ImportError:
            self.skipTest("distributed is not installed")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                      local_directory=self.folder) as cluster, distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            killing = kill_once(lambda: pids[0], os.path.join(self.folder, "dask"))
            self.assertEqual(self.swept("dask", client), self.alone)
            killing.join()
            self.assertNotIn(pids[0], client.run(os.getpid).values())


if __name__ == "__main__":
    python_package.run_tests()
