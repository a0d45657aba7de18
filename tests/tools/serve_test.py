"""mneme run --serve: the page, its events, Prometheus metrics, and access control."""
import json
import os
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, needs_pages, run_tests  # noqa: E402

setUpModule = needs_pages

SMOKE = os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml")


class Serve(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-serve-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def run_served(self, *options, rounds=1_000_000, files_max=None):
        """Starts a long run that may have `files_max` open files. Returns the run and its address."""
        def limited():
            resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, files_max))
        run = subprocess.Popen([PROGRAM, "run", SMOKE, "--quiet", "--threads", "1", "--out",
                                os.path.join(self.folder, "run"), "--set", f"rounds.per_task={rounds}", "--set",
                                "evaluation.every=1", "--serve", "0", *options], stderr=subprocess.PIPE, text=True,
                               preexec_fn=limited if files_max else None)
        self.addCleanup(run.stderr.close)
        self.addCleanup(run.wait)
        self.addCleanup(run.kill)
        said = run.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/\S*", said)
        self.assertTrue(found, said)
        return run, found.group(0), int(found.group(1))

    @staticmethod
    def get(address, **headers):
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:
            return answer.read().decode(), answer.headers

    def digest_of(self, *options):
        out = os.path.join(self.folder, f"other{len(options)}")
        subprocess.run([PROGRAM, "run", SMOKE, "--quiet", "--out", out, *options], check=True, capture_output=True)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            return json.load(file)["run_digest"]

    def test_the_page_follows_the_run_and_prometheus_reads_it(self):
        run, address, _ = self.run_served()
        with urllib.request.urlopen(address + "events", timeout=60) as events:
            self.assertEqual(events.headers["Content-Type"], "text/event-stream")
            seen = []
            while len(seen) < 3:
                line = events.readline().decode()
                if line.startswith("id: "):
                    seen.append(int(line[4:]))
            self.assertEqual(seen, sorted(set(seen)))
        page, headers = self.get(address)
        self.assertIn("text/html", headers["Content-Type"])
        self.assertIn("new EventSource", page)
        self.assertIn('<figure id="accuracy', page)
        figures, _ = self.get(address + "metrics")
        self.assertIn('status="running"', figures)
        rounds = int(re.search(r"^mneme_rounds_total (\d+) \d+$", figures, re.M).group(1))
        self.assertGreater(rounds, 0)
        later = rounds
        while later == rounds:
            later = int(re.search(r"^mneme_rounds_total (\d+) \d+$", self.get(address + "metrics")[0], re.M).group(1))
        self.assertGreater(later, rounds)
        run.terminate()
        self.assertEqual(run.wait(timeout=60), 130)

    def test_only_the_token_gives_access_to_the_page(self):
        _, address, port = self.run_served("--serve-token", "open sesame")
        figures = self.get(f"http://127.0.0.1:{port}/metrics", Authorization="Bearer open sesame")[0]
        self.assertIn("process_resident_memory_bytes ", figures)
        self.assertIn("<main>", self.get(address)[0])
        for wrong in ({}, {"Authorization": "Bearer open"}, {"Authorization": "Bearer open sesamf"}):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(f"http://127.0.0.1:{port}/", **wrong)
            self.assertEqual(refused.exception.code, 401)
            refused.exception.close()

    def rounds_done(self):
        path = os.path.join(self.folder, "run", "metrics.jsonl")
        if not os.path.exists(path):
            return 0
        with open(path, encoding="utf-8") as file:
            return file.read().count("\n")

    def checkpoints(self):
        """Existing checkpoints; the newest is the last."""
        folder = os.path.join(self.folder, "run", "checkpoint")
        names = os.listdir(folder) if os.path.exists(folder) else []
        return sorted(name for name in names if name.endswith(".checkpoint"))

    @staticmethod
    def is_connected(peer):
        try:
            return bool(peer.getpeername())
        except OSError:
            return False

    def test_a_thousand_idle_connections_and_malformed_requests_change_nothing(self):
        run, address, port = self.run_served("--set", "checkpoint.every=1", "--set", "checkpoint.force=true",
                                             files_max=256)
        peers = [socket.socket() for _ in range(1000)]  # silent peers; the system queues those not yet accepted
        for peer in peers:
            peer.setblocking(False)
            peer.connect_ex(("127.0.0.1", port))
        while not all(map(self.is_connected, peers)):
            self.assertIsNone(run.poll())
            time.sleep(0.01)
        before, written = self.rounds_done(), self.checkpoints()
        while self.rounds_done() < before + 100:
            self.assertIsNone(run.poll())
            time.sleep(0.01)
        self.assertGreater(self.checkpoints(), written)  # files can still be opened
        for peer in peers:
            peer.close()
        for k in range(200):
            with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
                try:
                    peer.sendall((b"\x16\x03\x01\x02\x00", b"GET " + b"a" * 20000, b"\r\n\r\n\r\n",
                                  b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n")[k % 4])
                except OSError:  # already dropped
                    pass
        self.assertIn('status="running"', self.get(address + "metrics")[0])
        run.terminate()
        self.assertEqual(run.wait(timeout=60), 130)
        self.assertNotIn("warning", run.stderr.read())

    def raw(self, port, data):
        """Returns the complete response to these bytes."""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as peer:
            peer.sendall(data)
            parts = []
            while part := peer.recv(1 << 16):
                parts.append(part)
        return b"".join(parts)

    def test_requests_for_another_host_are_refused(self):
        _, address, port = self.run_served()
        for host in ("rebound.example", f"rebound.example:{port}", "127.0.0.1.rebound.example"):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                self.get(address, Host=host)
            self.assertEqual(refused.exception.code, 421)
            refused.exception.close()
        self.assertIn("<main>", self.get(address, Host=f"localhost:{port}")[0])

    def status(self, port, text):
        """Status code of the response to this request."""
        return int(self.raw(port, text.encode()).split(b" ", 2)[1])

    def test_malformed_requests_are_refused(self):
        _, _, port = self.run_served()
        for status, hosts in ((200, ("localhost", "LOCALHOST:1", "127.0.0.1:8080", "[::1]", "[::1]:80")),
                              (421, ("localhost.rebound.example", "127.0.0.1.rebound.example:80", "", "[", "[::1",
                                     "10.0.0.1"))):
            for host in hosts:
                self.assertEqual(self.status(port, f"HEAD / HTTP/1.1\r\nHost: {host}\r\n\r\n"), status, host)
        local = "Host: localhost\r\n"
        for status, request in ((400, "GET / HTTP/1.1\r\n\r\n"), (400, f"GET / HTTP/1.1\r\n{local}{local}\r\n"),
                                (404, f"GET /none HTTP/1.1\r\n{local}\r\n"),
                                (405, f"POST / HTTP/1.1\r\n{local}Content-Length: 99999999999\r\n\r\n"),
                                (431, f"GET / HTTP/1.1\r\n{local}A: {'a' * 40000}\r\n\r\n")):
            self.assertEqual(self.status(port, request), status, request[:60])

    def test_a_thousand_ranges_need_no_additional_memory(self):
        run, address, port = self.run_served()
        page = self.get(address)[0]

        def peak_bytes():
            with open(f"/proc/{run.pid}/status", encoding="ascii") as file:
                return 1024 * int(re.search(r"VmHWM:\s+(\d+) kB", file.read()).group(1))
        before = peak_bytes()
        for _ in range(20):
            ranges = ",".join(["0-"] * 2600)
            answer = self.raw(port, f"GET / HTTP/1.1\r\nHost: localhost\r\nRange: bytes={ranges}\r\n\r\n".encode())
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer[:100])
            self.assertLess(len(answer), 2 * len(page) + 100_000)
        self.assertLess(peak_bytes(), before + (32 << 20))
        self.assertTrue(self.raw(port, b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 405 "))

    def test_silent_connections_do_not_block_others(self):
        _, address, port = self.run_served()
        peers = []
        for _ in range(3):
            for _ in range(40):
                peers.append(socket.create_connection(("127.0.0.1", port), timeout=60))
            self.get(address + "metrics")
        for peer in peers:
            peer.close()

    def test_serving_a_run_keeps_its_digest(self):
        self.assertEqual(self.digest_of("--serve", "0"), self.digest_of())

    def test_an_invalid_or_used_port_is_an_error(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            for options, said in ((("--serve", "http"), "expected a port in [0, 65535]"),
                                  (("--serve", "65536"), "expected a port"),
                                  (("--serve-token", "a"), "--serve-token without --serve"),
                                  (("--serve", str(taken.getsockname()[1])), "cannot listen on this port")):
                done = subprocess.run([PROGRAM, "run", SMOKE, "--out", os.path.join(self.folder, "never"), *options],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "never")))


if __name__ == "__main__":
    run_tests()
