"""Helpers for tests of nodes: node processes, runs that use them, and links that can be cut."""
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launcher_programs import plain_environment  # noqa: E402
from program import PROGRAM, ROOT, mneme, needs_nodes  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from free_port import free_port  # noqa: E402
from node_streams import ChangedMessages, framed  # noqa: E402
from node_streams import Link as ForgingLink  # noqa: E402

# Enough rounds to lose nodes in, with late uploads kept over rounds and tasks.
LONG = ("scenarios/smoke/fedprox.toml", ["rounds.per_task=200"])


def words(settings):
    return [word for setting in settings for word in ("--set", setting)]


class Node:
    """A node process that joins the run at `address`, with its output in a file. `before`: words in front of the
    command, such as for a network namespace."""

    count = 0

    def __init__(self, folder, address, *options, environment=None, before=(), program=PROGRAM):
        needs_nodes()
        Node.count += 1
        self.log = os.path.join(folder, f"node{Node.count}.log")
        around = {**(environment or os.environ), "TMPDIR": folder}  # so that files of killed nodes are removed, too
        with open(self.log, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen([*before, program, "node", "--join", address, *options], cwd=ROOT,
                                            stdout=out, stderr=subprocess.STDOUT, env=around)

    def text(self):
        with open(self.log, encoding="utf-8") as file:
            return file.read()

    def wait_for(self, pattern):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            found = re.search(pattern, self.text())
            if found:
                return found.group(1) if found.groups() else found.group(0)
            time.sleep(0.02)
        raise AssertionError(f"no '{pattern}' in: {self.text()}")

    def resident_kib(self, which="VmRSS"):
        """Returns the resident memory of the process. VmRSS: current; VmHWM: peak."""
        return kib_of(self.process.pid, which)

    def stop(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def end(self):
        self.process.kill()
        self.process.wait()


def kib_of(process, which):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return int(re.search(which + r":\s+(\d+)", file.read()).group(1))


class Link:
    """Connection between a node and the run at `port` that can be cut silently; neither end is notified."""

    def __init__(self, port):
        self.to, self.is_cut, self.ends = port, False, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.to))
            except OSError:  # the run does not listen yet
                near.close()
                continue
            self.ends += [near, far]
            for end in (near, far):  # otherwise small messages are delayed
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.carry, args=(one, other), daemon=True).start()

    def carry(self, one, other):
        try:
            while data := one.recv(65536):
                while self.is_cut:
                    time.sleep(0.05)
                other.sendall(data)
            other.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        self.is_cut = False
        for end in (self.listener, *self.ends):
            end.close()


class Stall(ChangedMessages):
    """Stream from a run to a node that ends before start message number `at`, except for heartbeats, until release().
    The node's part of a round is then unfinished, and the run waits for it indefinitely."""

    START = 7

    def __init__(self, at):
        super().__init__(self.passed)
        self.left, self.held = at, []
        self.is_reached, self.is_released = threading.Event(), threading.Event()

    def passed(self, message):
        self.left -= message[0] == self.START
        if self.left >= 0:
            return [message]
        self.held.append(message)
        self.is_reached.set()
        return []

    def __call__(self, number, data):
        out = super().__call__(number, data)
        if number == 0 and self.is_released.is_set():  # at the latest with the next heartbeat
            out += b"".join(map(framed, self.held))
            self.held = []
        return out

    def release(self):
        self.is_released.set()


class NodesCase(unittest.TestCase):
    digests = {}  # digests of runs in one process, by their arguments

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.runs = 0

    def node(self, address, *options, **how):
        node = Node(self.scratch.name, address, *options, **how)
        self.addCleanup(node.end)
        return node

    def cluster(self, *threads, trust=(), **how):
        """Starts nodes with these numbers of threads. Returns (options of a run that waits for the nodes, nodes)."""
        address = f"127.0.0.1:{free_port()}"
        nodes = [self.node(address, "--threads", str(count), *trust, **how) for count in threads]
        return ["--accept", address, "--workers-min", str(sum(threads)), *trust], nodes

    def keys(self, owner="ours"):
        """Returns the options for TLS with certificates of this owner's certificate authority."""
        folder = os.path.join(self.scratch.name, owner)
        self.assertEqual(mneme("node", "--make-keys", folder).returncode, 0)
        return ["--cert", f"{folder}/node.pem", "--key", f"{folder}/node.key", "--ca", f"{folder}/ca.pem"]

    def secret(self, name="secret", text="0123456789abcdef"):
        """Returns the options for TLS with a shared secret."""
        path = os.path.join(self.scratch.name, name)
        with open(path, "w", encoding="utf-8", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(text + "\n")
        return ["--secret", path]

    def projection(self):
        """Returns settings that make STSA's smoke scenario read a projection file."""
        projection = os.path.join(self.scratch.name, "projection.safetensors")
        header = json.dumps({"W_R": {"dtype": "F32", "shape": [32, 48], "data_offsets": [0, 4 * 32 * 48]}}).encode()
        with open(projection, "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.write(struct.pack(f"<{32 * 48}f", *((i * 37 % 101) / 50 - 1 for i in range(32 * 48))))
        return words([f"strategy.projection_file=\"{projection}\""])

    def rank(self, rank, size, scenario, *options, command="run", program=PROGRAM, **variables):
        """Starts the process of a rank with environment variables set by hand; their port is self.port."""
        around = plain_environment(**{"RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
                                      "LOCAL_WORLD_SIZE": str(size), "MASTER_PORT": str(self.port), **variables})
        process = subprocess.Popen([program, command, scenario, "--distributed", "--threads", "1", *options], cwd=ROOT,
                                   env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.let_go, process)
        return process

    def ranks(self, size, scenario, *options, **how):
        return [self.rank(rank, size, scenario, *options, **how) for rank in range(size)]

    def out(self):
        self.runs += 1
        return os.path.join(self.scratch.name, f"run{self.runs}")

    def read(self, folder):
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
            return json.load(file)

    def summary(self, scenario, *options, nodes=(), before=()):
        """Runs a scenario and returns its summary. `nodes`: number of threads of each node."""
        folder = self.out()
        accept, _ = self.cluster(*nodes) if nodes else ([], [])
        done = mneme("run", scenario, "--quiet", "--out", folder, *accept, *options, before=before)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.read(folder)

    def digest(self, scenario, *options):
        """Returns the digest of a run in one process. The run is computed once for all tests."""
        if (scenario, options) not in self.digests:
            self.digests[scenario, options] = self.summary(scenario, *options)["run_digest"]
        return self.digests[scenario, options]

    def begun(self, scenario, *options, before=()):
        """Starts a run and waits until it computes."""
        folder = self.out()
        process = self.started(folder, scenario, *options, before=before)
        while process.poll() is None and not os.path.exists(os.path.join(folder, "metrics.jsonl")):
            time.sleep(0.01)
        return process, folder

    def stalled(self, scenario, *options, others=0, node_options=(), at=4):
        """Starts a run that stalls at start message number `at` of its first node (see Stall). Returns process, folder,
        nodes and the stall. `others`: number of additional nodes. A node's `address` is that of the run."""
        port, folder = free_port(), self.out()
        stall = Stall(at)
        link = ForgingLink(port, answering=stall)
        self.addCleanup(link.close)
        accept = ["--accept", f"127.0.0.1:{port}", "--workers-min", str(1 + others)]
        nodes = [self.node(address, "--threads", "1", *node_options)
                 for address in (link.address, *[accept[1]] * others)]
        for node in nodes:
            node.address = accept[1]
        process = self.started(folder, scenario, "--threads", "1", *accept, *options)
        if not stall.is_reached.wait(120):
            process.kill()
            self.fail(process.communicate()[0])
        return process, folder, nodes, stall

    def started(self, folder, scenario, *options, before=(), environment=None):
        process = subprocess.Popen([*before, PROGRAM, "run", scenario, "--out", folder, *options], cwd=ROOT,
                                   env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.let_go, process)
        return process

    @staticmethod
    def let_go(process):
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()

    def ended(self, process, folder):
        said, _ = process.communicate(timeout=1800)
        self.assertEqual(process.returncode, 0, said)
        return self.read(folder), said
