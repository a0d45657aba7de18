"""Python methods on nodes and on the command line: digests, names and rejections."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import python_methods as methods  # noqa: E402
from forked_program import completed, started  # noqa: E402
from node_processes import free_port  # noqa: E402
from program import ROOT, needs_nodes  # noqa: E402
from python_package import scenario  # noqa: E402

setUpModule = needs_nodes

FILE = os.path.join(ROOT, "tests", "tools", "python_methods.py")
ALL = [methods.FedAvg, methods.FedProx, methods.Scaffold, methods.Icarl, methods.SquaredError]


class Node:
    """A node, in a fork of a process that has imported mneme."""

    def __init__(self, folder, address, *options):
        file, self.log = tempfile.mkstemp(dir=folder, suffix=".log")
        os.close(file)
        self.process = started("node", "--join", address, *options, out=self.log, TMPDIR=folder)

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def wait_for(self, words):
        until = time.monotonic() + 120
        while words not in self.text() and time.monotonic() < until:
            time.sleep(0.02)

    def send(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        """Returns the exit code."""
        self.process.join(60)
        return self.process.exitcode

    def end(self):
        self.process.kill()
        self.process.join()


class Scratch(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def cluster(self, *options, count=1):
        """Starts `count` nodes with one thread each. Returns (arguments of run(), nodes)."""
        address = f"127.0.0.1:{free_port()}"
        nodes = [Node(self.folder, address, "--threads", "1", *options) for _ in range(count)]
        for node in nodes:
            self.addCleanup(node.end)
        return {"accept": address, "workers_min": count}, nodes


class Threads(mneme.cluster.Cluster):
    """A cluster whose nodes are started by threads of this process."""

    def host(self):
        return "127.0.0.1"

    def start(self, address):
        self.codes = []
        self.threads_of_nodes = [threading.Thread(target=self.compute, args=(address,)) for _ in range(self.nodes)]
        for thread in self.threads_of_nodes:
            thread.start()

    def compute(self, address):
        self.codes.append(mneme.cluster.compute(address, self.secret, self.threads, self.options))

    def stop(self, wait_s):
        for thread in self.threads_of_nodes:
            thread.join()


class OneJob:
    """An executor like submitit's that accepts one job, and this job."""

    def __init__(self):
        self.submitted, self.cancelled = 0, False

    def submit(self, *_):
        self.submitted += 1
        if self.submitted > 1:
            raise RuntimeError("the queue is full")
        return self

    def done(self):
        return False

    def cancel(self):
        self.cancelled = True


class Nodes(Scratch):
    def test_two_nodes_give_the_digest_of_one_process(self):
        shared = []  # one node may finish a short run before the other takes a job
        for name in ("py-fedavg", "py-fedprox", "py-scaffold", "py-icarl", "py-squared-error"):
            chosen = scenario(name)
            alone = mneme.run(chosen, methods=ALL, out=self.path(name))
            accept, _ = self.cluster("--python-code", FILE, count=2)
            apart = mneme.run(chosen, methods=ALL, out=self.path(name + "-nodes"), **accept)
            self.assertEqual(apart.digest, alone.digest, name)
            done = [node["client_rounds"] for node in apart.summary["nodes"]]
            self.assertEqual(len(done), 2)
            shared.append(all(done))
        self.assertTrue(any(shared))

    def test_killing_a_node_keeps_the_digest(self):
        accept, (_, second) = self.cluster("--python-code", FILE, count=2)
        chosen = scenario("py-fedavg", rounds={"per_task": 40})
        killed = []

        def kill(record):
            if not killed:
                killed.append(second.send(signal.SIGKILL))
        apart = mneme.run(chosen, methods=ALL, out=self.path("apart"), **accept, on_evaluation=kill)
        self.assertEqual(apart.digest, mneme.run(chosen, methods=ALL, out=self.path("alone")).digest)

    def test_a_node_without_the_method_or_with_another_source_is_rejected(self):
        other = self.write("other.py", "import mneme\n\n\nclass FedAvg(mneme.Method):\n    name = 'py-fedavg'\n")
        for options, expected in (((), "py-fedavg"), (("--python-code", other), "another source")):
            with self.subTest(expected):
                accept, (node,) = self.cluster(*options)
                node.wait_for("waits for the run")
                with self.assertRaisesRegex((mneme.ScenarioError, mneme.RunFailed), expected):
                    mneme.run(scenario("py-fedavg", worker={"join_timeout": "4 s"}), methods=ALL,
                              out=self.path("never"), **accept)
                self.assertFalse(os.path.exists(self.path("never")))
                self.assertEqual(node.wait(), 2)

    def test_a_cluster_that_cannot_start_all_nodes_stops_the_others(self):
        jobs = OneJob()
        with self.assertRaisesRegex(RuntimeError, "the queue is full"), mneme.cluster.Submitit(jobs, 2):
            self.fail("started")
        self.assertEqual((jobs.submitted, jobs.cancelled), (2, True))

    def test_a_cluster_may_have_an_ipv6_address(self):
        self.assertRegex(mneme.cluster.free_address("127.0.0.1"), r"^127\.0\.0\.1:\d+$")
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("this machine has no IPv6")
        self.assertRegex(mneme.cluster.free_address("::1"), r"^\[::1\]:\d+$")

    def test_a_cluster_starts_the_nodes_of_a_run_with_a_secret(self):
        alone = mneme.run(scenario("fedavg"), out=self.path("alone"))
        cluster = Threads(2, threads_per_node=1)
        apart = mneme.run(scenario("fedavg"), out=self.path("apart"), cluster=cluster)
        self.assertEqual(apart.digest, alone.digest)
        self.assertEqual(len(apart.summary["nodes"]), 2)
        self.assertEqual(cluster.codes, [0, 0])
        with self.assertRaisesRegex(ValueError, "cluster: chooses address and secret"):
            mneme.run(scenario("fedavg"), out=self.path("never"), cluster=cluster, accept="127.0.0.1:7100")

    def test_short_secrets_and_addresses_without_a_port_are_refused(self):
        for how, expected in (({"secret": "short"}, "at least 16 characters"),
                              ({"accept": "nowhere"}, "'nowhere' is not an address")):
            with self.assertRaisesRegex(ValueError, expected):
                mneme.run(scenario("fedavg"), out=self.path("never"), **{"accept": "127.0.0.1:0", **how})

    def test_a_node_ends_cleanly(self):
        _, (node,) = self.cluster("--python-code", FILE)
        node.wait_for("waits for the run")
        node.send(signal.SIGTERM)
        self.assertEqual(node.wait(), 0)


class CommandLine(Scratch):
    def test_every_command_has_the_methods_of_a_file(self):
        code = ("--python-code", FILE)
        listed = subprocess.run([sys.executable, "-m", "mneme", "list", "strategies", *code], capture_output=True,
                                text=True, check=True)
        self.assertIn("py-fedprox", listed.stdout)
        self.assertNotIn("py-fedprox", completed("list", "strategies").stdout)
        self.assertRegex(completed("help", "py-fedprox", *code).stdout, "(?s)mu.*0.01.*Weight of the proximal term")
        run = mneme.run(scenario("py-fedprox"), methods=[methods.FedProx], out=self.path("run"))
        resolved = os.path.join(run.folder, "scenario.toml")
        self.assertEqual(completed("validate", resolved, *code).returncode, 0)
        refused = completed("validate", resolved)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("py-fedprox", refused.stderr)
        done = completed("run", resolved, "--out", self.path("again"), "--quiet", f"--python-code={FILE}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(mneme.load(self.path("again")).digest, run.digest)
        wrong = completed("run", resolved, "--set", "strategy.mu=-1", *code)
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, "strategy.mu")

    def test_an_invalid_code_file_is_refused(self):
        for text, expected in (("import mneme\n", "no method"), ("1 / 0\n", "ZeroDivisionError"),
                               (None, "no such file")):
            with self.subTest(expected):
                path = self.write("code.py", text) if text else self.path("missing.py")
                said = completed("list", "strategies", "--python-code", path)
                self.assertEqual(said.returncode, 2)
                self.assertRegex(said.stderr, expected)


if __name__ == "__main__":
    python_package.run_tests()
