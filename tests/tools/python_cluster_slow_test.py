"""A sweep of twenty runs with a process pool, a Dask cluster, submitit and Ray, where a worker is killed: equal
tables. Runs of four methods over nodes that these clusters start: equal digests."""
import concurrent.futures
import contextlib
import glob
import multiprocessing
import os
import shutil
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
import python_cluster_test  # noqa: E402
from program import needs_nodes  # noqa: E402
from python_package import scenario  # noqa: E402

setUpModule = needs_nodes

OVER, SEEDS = {"strategy.name": ["fedavg", "fedprox"]}, list(range(1, 11))
BASE = scenario("fedavg", rounds={"per_task": 40})


def kill_once(pid_of_one, out):
    """Kills a worker after a few points have started, and sets `killed` of the thread."""
    def watch():
        until = time.monotonic() + 120
        while time.monotonic() < until and not thread.killed:
            time.sleep(0.02)
            with contextlib.suppress(LookupError, StopIteration, OSError):
                if len(mneme.runs(out)) >= 4:
                    os.kill(pid_of_one(), signal.SIGKILL)
                    thread.killed = True
    thread = threading.Thread(target=watch)
    thread.killed = False
    thread.start()
    return thread


def process_named(name):
    """Returns a process with this title."""
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if file.read().startswith(name.encode()):
                return int(path.split("/")[2])
    raise LookupError(name)


def slow_start():
    """Lets workers start in different processes; returns the process id."""
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

    def expect_killed(self, thread):
        thread.join()
        self.assertTrue(thread.killed, "no worker was there to be killed")

    def test_a_process_pool_survives_a_killed_process(self):
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            pool.submit(slow_start).result()
            killing = kill_once(lambda: next(iter(pool._processes)), os.path.join(self.folder, "pool"))
            self.assertEqual(self.swept("pool", pool), self.alone)
            self.expect_killed(killing)

    def test_a_dask_cluster_survives_a_killed_worker(self):
        try:
            import distributed
        except ImportError:
            self.skipTest("distributed is not installed")
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
                                      local_directory=self.folder) as cluster, distributed.Client(cluster) as client:
            pids = list(client.run(os.getpid).values())
            killing = kill_once(lambda: pids[0], os.path.join(self.folder, "dask"))
            self.assertEqual(self.swept("dask", client), self.alone)
            self.expect_killed(killing)
            self.assertNotIn(pids[0], client.run(os.getpid).values())

    def test_submitit_jobs_survive_a_killed_job(self):
        try:
            import submitit
        except ImportError:
            self.skipTest("submitit is not installed")
        out, jobs = os.path.join(self.folder, "submitit"), []
        executor = submitit.AutoExecutor(os.path.join(self.folder, "jobs"), cluster="local")
        executor.update_parameters(timeout_min=10)

        class Few:
            """Limits jobs to two at a time, since submitit's local cluster has no queue."""
            def submit(self, function, *arguments):
                while sum(not job.done() for job in jobs) >= 2:
                    time.sleep(0.1)
                jobs.append(executor.submit(function, *arguments))
                return jobs[-1]

        def computing():
            controller = next(job for job in jobs if not job.done())._process.pid
            with open(f"/proc/{controller}/task/{controller}/children", encoding="utf-8") as file:
                return int(file.read().split()[0])

        killing = kill_once(computing, out)
        self.assertEqual(self.swept("submitit", Few()), self.alone)
        self.expect_killed(killing)
        self.assertGreater(len(jobs), 20)

    def test_a_ray_cluster_survives_a_killed_worker(self):
        try:
            import ray
        except ImportError:
            self.skipTest("ray is not installed")
        os.environ["RAY_AUTH_MODE"] = "disabled"  # otherwise Ray writes a token into the user's home
        scratch = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # socket paths must be short
        self.addCleanup(shutil.rmtree, scratch, ignore_errors=True)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=scratch)
        self.addCleanup(ray.shutdown)
        out = os.path.join(self.folder, "ray")
        killing = kill_once(lambda: process_named("ray::perform_there"), out)
        self.assertEqual(self.swept("ray", ray), self.alone)
        self.expect_killed(killing)


@contextlib.contextmanager
def ray_cluster(_):
    """Two raylets with one CPU each."""
    os.environ["RAY_AUTH_MODE"] = "disabled"  # otherwise Ray writes a token into the user's home
    os.environ["RAY_worker_niceness"] = "0"  # 15 by default, which starves nodes on a busy machine
    import ray
    from ray.cluster_utils import Cluster
    scratch = tempfile.mkdtemp(prefix="ray", dir="/tmp")  # socket paths must be short
    os.makedirs("/tmp/ray", exist_ok=True)  # where Ray stores the address of its last cluster
    raylets = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False,
                                                            "temp_dir": scratch})
    try:
        raylets.add_node(num_cpus=1)
        ray.init(address=raylets.address)
        yield mneme.cluster.Ray(nodes=2)
    finally:
        ray.shutdown()
        raylets.shutdown()
        shutil.rmtree(scratch, ignore_errors=True)


class Launched(python_cluster_test.Launched):
    scenarios = ("fedavg", "fedasync", "stsa", "lga")

    def test_two_raylets_give_the_digest_of_one_process(self):
        self.compare_with_one_process(ray_cluster)


if __name__ == "__main__":
    python_package.run_tests()
