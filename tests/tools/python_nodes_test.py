"""Python methods on nodes and on the command line: digests, names, and refusals."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import python_methods as methods  # noqa: E402
from program import ROOT  # noqa: E402
from python_package import scenario  # noqa: E402

FILE = os.path.join(ROOT, "tests", "tools", "python_methods.py")
ALL = [methods.FedAvg, methods.FedProx, methods.Scaffold, methods.Icarl, methods.SquaredError]


def program(*words):
    command = [sys.executable, "-m", "mneme", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


class Node:
    def __init__(self, folder, *options):
        self.log = tempfile.NamedTemporaryFile("w+", dir=folder, suffix=".log", delete=False)
        self.process = subprocess.Popen([sys.executable, "-m", "mneme", "node", "--listen", "127.0.0.1:0", *options],
                                        stdout=self.log, stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": folder})
        until = time.monotonic() + 120
        while not (found := re.search(r"listening on (\S+)", self.text())):
            if time.monotonic() > until or self.process.poll() is not None:
                raise AssertionError(self.text())
            time.sleep(0.05)
        self.address = found.group(1)

    def text(self):
        with open(self.log.name, encoding="utf-8") as file:
            return file.read()

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        code = self.process.wait()
        self.log.close()
        return code


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

    def node(self, *options):
        node = Node(self.folder, *options)
        self.addCleanup(node.end)
        return node


class Nodes(Scratch):
    def test_two_nodes_give_the_digest_of_one_process(self):
        nodes = [self.node("--threads", "1", "--python-code", FILE) for _ in range(2)]
        addresses = [node.address for node in nodes]
        for name in ("py-fedavg", "py-fedprox", "py-scaffold", "py-icarl", "py-squared-error"):
            chosen = scenario(name)
            alone = mneme.run(chosen, methods=ALL, out=self.path(name))
            apart = mneme.run(chosen, methods=ALL, out=self.path(name + "-nodes"), nodes=addresses)
            self.assertEqual(apart.digest, alone.digest, name)
            done = [node["client_rounds"] for node in apart.summary["nodes"]]
            self.assertTrue(all(done), done)
        for name in ("fedavg", "fedprox"):
            native = mneme.run(scenario(name), out=self.path(name), nodes=addresses)
            self.assertEqual(native.digest, mneme.load(self.path("py-" + name)).digest)

    def test_a_node_that_is_killed_changes_nothing(self):
        first, second = (self.node("--threads", "1", "--python-code", FILE) for _ in range(2))
        chosen = scenario("py-fedavg", rounds={"per_task": 40})
        killed = []

        def kill(record):
            if not killed:
                killed.append(second.process.send_signal(signal.SIGKILL))
        apart = mneme.run(chosen, methods=ALL, out=self.path("apart"), nodes=[first.address, second.address],
                          on_evaluation=kill)
        self.assertEqual(apart.digest, mneme.run(chosen, methods=ALL, out=self.path("alone")).digest)

    def test_a_node_without_the_method_or_with_another_source_refuses(self):
        other = self.write("other.py", "import mneme\n\n\nclass FedAvg(mneme.Method):\n    name = 'py-fedavg'\n")
        for options, expected in (((), "py-fedavg"), (("--python-code", other), "another source")):
            with self.subTest(expected):
                node = self.node(*options)
                with self.assertRaisesRegex((mneme.ScenarioError, mneme.RunFailed), expected):
                    mneme.run(scenario("py-fedavg"), methods=ALL, out=self.path("never"), nodes=[node.address])
                self.assertFalse(os.path.exists(self.path("never")))

    def test_a_node_ends_in_order(self):
        self.assertEqual(self.node("--python-code", FILE).end(signal.SIGTERM), 130)


class CommandLine(Scratch):
    def test_every_command_knows_the_methods_of_a_file(self):
        code = ("--python-code", FILE)
        self.assertIn("py-fedprox", program("list", "strategies", *code).stdout)
        self.assertNotIn("py-fedprox", program("list", "strategies").stdout)
        self.assertRegex(program("help", "py-fedprox", *code).stdout, "(?s)mu.*0.01.*Weight of the proximal term")
        run = mneme.run(scenario("py-fedprox"), methods=[methods.FedProx], out=self.path("run"))
        resolved = os.path.join(run.folder, "scenario.toml")
        self.assertEqual(program("validate", resolved, *code).returncode, 0)
        refused = program("validate", resolved)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("py-fedprox", refused.stderr)
        done = program("run", resolved, "--out", self.path("again"), "--quiet", f"--python-code={FILE}")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(mneme.load(self.path("again")).digest, run.digest)
        wrong = program("run", resolved, "--set", "strategy.mu=-1", *code)
        self.assertEqual(wrong.returncode, 2)
        self.assertRegex(wrong.stderr, "strategy.mu")

    def test_a_file_that_is_none_is_refused(self):
        for text, expected in (("import mneme\n", "no method"), ("1 / 0\n", "ZeroDivisionError"),
                               (None, "no such file")):
            with self.subTest(expected):
                path = self.write("code.py", text) if text else self.path("missing.py")
                said = program("list", "strategies", "--python-code", path)
                self.assertEqual(said.returncode, 2)
                self.assertRegex(said.stderr, expected)


if __name__ == "__main__":
    python_package.run_tests()
