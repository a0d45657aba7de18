"""What a run says to a node, and a node to a run, arrives damaged: both go on, or say what is wrong and end; a node
stays, whatever it hears, and takes little memory."""
import os
import random
import re
import shutil
import socket
import subprocess
import time

from disturbed_runs import ROOT
from mutations import mutated
from node_streams import DamagedMessage, Link, MessageReader, framed
from started_programs import ADDRESSES_BYTES, StartedPrograms
from ways_to_run import INTERRUPTED, LIMIT_S

SILENCE_S = 0.1     # then a node has answered
LIVE_EVERY = 20     # cases between two in which a run and a node are at work
NODE_LIMIT_S = 20
SETTINGS = ["rounds.per_task=2", "worker.node_silence=\"1 s\""]


def kib_of(process, name):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return int(re.search(name + r":\s+(\d+)", file.read()).group(1))


def said_in(link):
    """How the first connection began, and its messages: credits confirm bytes that a node may not have sent yet."""
    reader = MessageReader()
    messages = reader.feed(bytes(link.said[0]))
    return reader.preamble, messages


class NodeSearch:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        os.makedirs(folder, exist_ok=True)
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES)
        self.node = None
        self.counts = {"replayed": 0, "at work": 0, "found": 0}
        self._begin_node()
        link = Link(self.port)
        ended = self._run(link.address)
        if ended.code != 0:
            raise SystemExit(f"a run with a node fails undisturbed: {ended.errors}")
        self.preamble, self.messages = said_in(link)
        link.close()
        asking = Link(self.port)
        subprocess.run([program, "node", "--status", asking.address], check=True, capture_output=True)
        self.question = self.preamble + b"".join(map(framed, said_in(asking)[1]))
        asking.close()
        self.honest_kib = self.peak_kib = kib_of(self.node.pid, "VmHWM")

    def close(self):
        self.programs.close()
        self.node.kill()
        self.node.wait()

    def summary(self):
        return f"peak memory of a node: {self.peak_kib / self.honest_kib:.2f} of what an honest run takes"

    def try_seed(self, seed):
        draw = random.Random(seed)
        if seed % LIVE_EVERY == 0:
            self.counts["at work"] += 1
            fault = self._at_work(draw)
        else:
            self.counts["replayed"] += 1
            fault = self._replayed(self._damaged_stream(draw))
        fault = fault or self._memory_fault()
        if not fault:
            return None
        self.counts["found"] += 1
        return f"seed {seed}: {fault}"

    # -- a stream that a run has said before

    def _damaged_stream(self, draw):
        """Mostly one message in frames that fit, at times the frames themselves."""
        if draw.random() < 0.3:
            return mutated(self.preamble + b"".join(map(framed, self.messages)), draw)
        messages = list(self.messages)
        at = draw.randrange(len(messages))
        change = draw.random()
        if change < 0.8:
            messages[at] = bytes(mutated(messages[at], draw))
        elif change < 0.9:
            messages.insert(draw.randrange(len(messages)), messages[at])
        else:
            del messages[at]
        return self.preamble + b"".join(map(framed, messages))

    def _replayed(self, stream):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=NODE_LIMIT_S) as end:
                self._say(end, stream)
        except OSError:
            pass  # the node has hung up
        return self._node_fault()

    @staticmethod
    def _say(end, stream):
        end.sendall(stream)
        end.settimeout(SILENCE_S)
        while end.recv(1 << 16):
            pass

    def _node_fault(self):
        """A node answers who asks for its state, soon."""
        until = time.monotonic() + NODE_LIMIT_S
        while time.monotonic() < until and self.node.poll() is None:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=NODE_LIMIT_S) as end:
                    end.sendall(self.question)
                    end.settimeout(NODE_LIMIT_S)
                    answer = b""
                    while data := end.recv(1 << 16):
                        answer += data
                        if b'"waits"' in answer:
                            return None
            except OSError:
                pass
            time.sleep(0.02)
        code, said = self.node.poll(), self._log()
        self._begin_node()
        return f"the node ended with code {code}: {said}" if code is not None else f"the node is busy for ever: {said}"

    # -- both at work

    def _at_work(self, draw):
        damage = DamagedMessage(draw.randrange(len(self.messages)), lambda message: bytes(mutated(message, draw)))
        link = Link(self.port, **{draw.choice(["passing", "answering"]): damage})
        ended = self._run(link.address)
        link.close()
        if ended.code in (None, INTERRUPTED):
            return "the run does not end"
        if ended.code not in (0, 1, 2):
            return f"the run ended with code {ended.code}: {ended.errors[-300:]}"
        if ended.code != 0 and "error: " not in ended.errors:
            return f"the run ended with code {ended.code} and gave no reason: {ended.errors[-300:]}"
        return self._node_fault()

    def _run(self, address):
        out = os.path.join(self.folder, "run")
        shutil.rmtree(out, ignore_errors=True)
        words = ["run", os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), "--quiet", "--out", out,
                 "--threads", "1", "--nodes", address]
        return self.programs.run(words + [word for setting in SETTINGS for word in ("--set", setting)])

    # -- the node

    def _begin_node(self):
        self.log = os.path.join(self.folder, "node.log")
        with open(self.log, "wb") as out:
            self.node = subprocess.Popen([self.program, "node", "--listen", "127.0.0.1:0", "--threads", "1"],
                                         stdout=out, stderr=subprocess.STDOUT)
        until = time.monotonic() + NODE_LIMIT_S
        while not (found := re.search(r"listening on \S*:(\d+)", self._log())):
            if time.monotonic() > until or self.node.poll() is not None:
                raise SystemExit(f"no node begins: {self._log()}")
            time.sleep(0.02)
        self.port = int(found.group(1))

    def _log(self):
        with open(self.log, "rb") as file:
            return file.read().decode("utf-8", "replace")[-600:]

    def _memory_fault(self):
        peak = kib_of(self.node.pid, "VmHWM")
        before, self.peak_kib = self.peak_kib, max(peak, self.peak_kib)
        if peak <= max(before, 2 * self.honest_kib):
            return None
        return f"the node took {peak >> 10} MiB, and for an honest run {self.honest_kib >> 10} MiB"
