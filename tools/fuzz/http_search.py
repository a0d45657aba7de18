"""Requests of every kind to a run that is watched: it lives, takes little memory, and answers who asks properly."""
import os
import random
import re
import socket
import subprocess
import urllib.request

from disturbed_runs import ROOT
from mutations import mutated

SECONDS_OF_AN_ANSWER = 30
GROWTH_MAX_BYTES = 64 << 20
TARGETS = ["/", "/metrics", "/events", "/?token=x", "/nothing", "//", "/%00", "/" + "a" * 3000, "*",
           "/..%2f..%2fetc/passwd"]
METHODS = ["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PRI", "get", ""]
VERSIONS = ["HTTP/1.1", "HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "HTTP/9.9", ""]


def _header(draw):
    count = draw.choice([1, 10, 500, 5000])
    return draw.choice([
        lambda: "Range: bytes=" + ",".join(draw.choice(["0-", "0-0", "-1", "5-1", "0-18446744073709551615"])
                                           for _ in range(count)),
        lambda: "Host: " + draw.choice(["localhost", "127.0.0.1:1", "rebound.example", "[::1]", "", "a" * count]),
        lambda: f"Content-Length: {draw.choice([0, 1, -1, 2**31, 2**64, 'x'])}",
        lambda: "Transfer-Encoding: " + draw.choice(["chunked", "gzip, chunked", "identity"]),
        lambda: "Expect: 100-continue", lambda: "Connection: " + draw.choice(["close", "keep-alive", "upgrade"]),
        lambda: "Accept-Encoding: " + ", ".join(["gzip", "br"] * count),
        lambda: "Authorization: Bearer " + "a" * count, lambda: "Cookie: " + "a=b; " * count,
        lambda: "X" * count, lambda: ": nameless", lambda: " folded", lambda: "\x00: \xff",
        lambda: "Content-Type: multipart/form-data; boundary=" + "b" * count])()


def drawn_request(draw):
    lines = [f"{draw.choice(METHODS)} {draw.choice(TARGETS)} {draw.choice(VERSIONS)}"]
    lines += ["Host: 127.0.0.1"] * draw.choice([0, 1, 1, 1, 2])
    lines += [_header(draw) for _ in range(draw.choice([0, 1, 3, 20, 200]))]
    data = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + b"b" * draw.choice([0, 0, 10, 10000])
    return mutated(data, draw) if draw.random() < 0.3 else data


class HttpSearch:
    def __init__(self, program, folder):
        self.counts = {"requests": 0, "answered": 0, "found": 0}
        os.makedirs(folder, exist_ok=True)
        words = [program, "run", os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), "--quiet", "--threads", "1",
                 "--out", os.path.join(folder, "run"), "--set", "training.epochs=1000000", "--serve", "0"]
        self.run = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        said = self.run.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", said)
        if not found:
            raise SystemExit(f"nothing is served: {said}")
        self.port = int(found.group(1))
        self._page()
        self.before = self._bytes()

    def _bytes(self):
        with open(f"/proc/{self.run.pid}/status", encoding="ascii") as file:
            return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1))

    def _page(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=SECONDS_OF_AN_ANSWER) as answer:
            return answer.status

    def try_seed(self, seed):
        """Some connections at once, which say something, a part of it, or nothing; None, or what was found."""
        draw = random.Random(seed)
        peers = []
        try:
            for _ in range(draw.choice([1, 5, 100])):
                peers.append(self._peer(draw))
            fault = self._fault()
            for peer in peers:
                peer.settimeout(0.05)
                try:
                    self.counts["answered"] += peer.recv(100).startswith(b"HTTP/1.")
                except OSError:
                    pass
        finally:
            for peer in peers:
                peer.close()
        if fault:
            self.counts["found"] += 1
        return f"seed {seed}: {fault}" if fault else None

    def _peer(self, draw):
        peer = socket.create_connection(("127.0.0.1", self.port), timeout=SECONDS_OF_AN_ANSWER)
        self.counts["requests"] += 1
        data = drawn_request(draw)
        if draw.random() < 0.3:
            data = data[:draw.randrange(len(data) + 1)]
        peer.setblocking(False)
        try:
            peer.send(data)
        except OSError:  # dropped already
            pass
        return peer

    def _fault(self):
        try:
            status = self._page()
        except OSError as why:
            status = why
        if self.run.poll() is not None:
            return f"the run ended with code {self.run.returncode}: {self.run.stderr.read()[-300:]}"
        if status != 200:
            return f"an honest request was not answered: {status}"
        if self._bytes() > self.before + GROWTH_MAX_BYTES:
            return f"it took {(self._bytes() - self.before) >> 20} MiB more"
        return None

    def close(self):
        self.run.kill()  # its one job is far from its end
        self.run.communicate()
