"""Metrics, health and readiness of runs and nodes (--metrics)."""
import os
import re
import socket
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, free_port, words  # noqa: E402
from program import mneme, needs_nodes, needs_pages, run_tests  # noqa: E402

setUpModule = needs_nodes

SCENARIO = "scenarios/smoke/fedprox.toml"
ENDLESS = words(["rounds.per_task=100000", "worker.no_nodes=\"wait\""])
TOKEN = "0123456789abcdef"


def get(url, **headers):
    """Returns status and text of a response."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


class Metrics(NodesCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        needs_pages()

    def served(self, process):
        """Returns the address of the metrics that a run has printed."""
        return next(found for found in map(re.compile(r"metrics at (http://\S+)/metrics").search, process.stdout)
                    if found)[1]

    def await_answer(self, url, expected):
        until = time.monotonic() + 120
        while get(url) != expected:
            self.assertLess(time.monotonic(), until, get(url))
            time.sleep(0.02)

    def metric(self, place, name):
        """Returns the value of a metric with at most one label; 0 if it is missing."""
        found = re.search(rf"^{name}(?:{{[^}}]*}})? (\S+) \d+$", get(place + "/metrics")[1], re.M)
        return float(found[1]) if found else 0.0

    def await_metric(self, place, name, least=1):
        until = time.monotonic() + 120
        while self.metric(place, name) < least:
            self.assertLess(time.monotonic(), until, name)
            time.sleep(0.02)

    def test_run_and_node_are_ready_while_they_compute(self):
        address = f"127.0.0.1:{free_port()}"
        first = self.node(address, "--threads", "1", "--metrics", "127.0.0.1:0")
        at_node = first.wait_for(r"metrics at (http://\S+)/metrics")
        first.wait_for("waits for the run")
        self.assertEqual(get(at_node + "/healthz"), (200, "alive\n"))
        status, reason = get(at_node + "/readyz")
        self.assertEqual(status, 503)
        self.assertRegex(reason, f"^waits for the run at {address}: .*\n$")

        process = self.started(self.out(), SCENARIO, "--accept", address, "--workers-min", "2", "--metrics",
                               "127.0.0.1:0", *ENDLESS)
        at_run = self.served(process)
        self.await_answer(at_run + "/readyz", (503, "waits for nodes\n"))
        self.assertEqual(get(at_run + "/healthz"), (200, "alive\n"))
        self.await_answer(at_node + "/readyz", (200, "ready\n"))  # loaded, while the run waits for the other node

        second = self.node(address, "--threads", "1")
        self.await_answer(at_run + "/readyz", (200, "ready\n"))
        self.check_metrics(at_run, at_node)
        second.end()
        self.await_metric(at_run, "mneme_run_disconnects_total")
        self.assertEqual(get(at_run + "/readyz"), (200, "ready\n"))
        first.end()
        self.await_answer(at_run + "/readyz", (503, "waits for a node\n"))
        self.await_metric(at_run, "mneme_run_disconnects_total", 2)  # counted after the connection has ended
        self.assertEqual(self.metric(at_run, "mneme_run_nodes_joined_total"), 2)
        self.assertEqual(self.metric(at_run, "mneme_run_node_up"), 0)

    def test_the_reason_changes_while_the_run_trains_its_backbone(self):
        settings = "[data]\nname = \"synthetic\"\nshape = [16]\nclasses = 10\nrows = 600\n[model]\nname = \"mlp\"\n" \
                   "hidden = [12, 9]\n"
        trained, learning = (os.path.join(self.scratch.name, name) for name in ("backbone.toml", "test.toml"))
        with open(trained, "w", encoding="utf-8") as file:
            file.write(f"seed = 2\n{settings}[tasks]\nkind = \"single\"\nclasses = 6\n[clients]\ncount = 1\n"
                       "[rounds]\nper_task = 10000000\n[strategy]\nname = \"fedavg\"\n")
        with open(learning, "w", encoding="utf-8") as file:
            file.write(f"seed = 2\n{settings}backbone = \"backbone.toml\"\n[tasks]\ncount = 2\nclasses = 4\n"
                       "class_order = [6, 7, 8, 9, 0, 1, 2, 3, 4, 5]\n[clients]\ncount = 8\n[strategy]\n"
                       "name = \"fedavg\"\n")
        address = f"127.0.0.1:{free_port()}"
        node = self.node(address, "--threads", "1", "--metrics", "127.0.0.1:0", "--idle-timeout", "60 s")
        at_node = node.wait_for(r"metrics at (http://\S+)/metrics")
        process = self.started(self.out(), learning, "--accept", address, "--metrics", "127.0.0.1:0",
                               environment={**os.environ, "MNEME_CACHE": self.scratch.name})
        at_run = self.served(process)
        self.await_answer(at_run + "/readyz", (503, "trains the backbone, or loads it\n"))
        self.await_answer(at_node + "/readyz", (503, "waits for the run's scenario\n"))

    def check_metrics(self, at_run, at_node):
        self.await_metric(at_run, "mneme_run_node_client_rounds_total")
        self.assertGreater(self.metric(at_run, "mneme_run_node_received_bytes_total"), 0)
        self.assertEqual(self.metric(at_run, "mneme_run_node_up"), 1)
        self.assertEqual(self.metric(at_run, "mneme_run_nodes_joined_total"), 2)
        self.assertGreater(self.metric(at_run, "caf_system_running_actors"), 3)
        self.assertGreater(self.metric(at_run, "process_cpu_seconds_total"), 0)
        self.assertIn("caf_actor_mailbox_size{name=\"mneme.placement\"} ", get(at_run + "/metrics")[1])
        self.assertNotIn("mneme.client\"", get(at_run + "/metrics")[1])
        self.assertEqual(self.metric(at_node, "mneme_node_runs_total"), 1)
        self.assertEqual(self.metric(at_node, "mneme_node_working"), 1)
        self.assertEqual(self.metric(at_node, "mneme_node_workers"), 1)
        self.assertGreater(self.metric(at_node, "caf_system_running_actors"), 1)
        self.assertIn("caf_actor_mailbox_size{name=\"mneme.worker\"} ", get(at_node + "/metrics")[1])

    def test_metrics_off_the_loopback_need_a_token_and_health_does_not(self):
        path = self.secret("token", TOKEN)[1]
        for options, environment in ((["--metrics-token", path], None),
                                     ([], {**os.environ, "MNEME_METRICS_TOKEN": TOKEN})):
            node = self.node(f"127.0.0.1:{free_port()}", "--metrics", "0.0.0.0:0", *options, environment=environment)
            place = "http://127.0.0.1:" + node.wait_for(rf"metrics at http://{socket.gethostname()}:(\d+)/metrics")
            for headers, status in (({}, 401), ({"Authorization": "Bearer " + TOKEN[:-1] + "g"}, 401),
                                    ({"Authorization": "Bearer " + TOKEN}, 200)):
                self.assertEqual(get(place + "/metrics", **headers)[0], status)
            self.assertEqual(get(place + "/healthz", Host="10.0.0.1:9100"), (200, "alive\n"))
            self.assertEqual(get(place + "/readyz")[0], 503)

    def test_without_a_token_other_hosts_are_refused(self):
        node = self.node(f"127.0.0.1:{free_port()}", "--metrics", "127.0.0.1:0")
        place = node.wait_for(r"metrics at (http://\S+)/metrics")
        for page in ("metrics", "healthz", "readyz"):
            self.assertEqual(get(f"{place}/{page}", Host="rebound.example")[0], 421)

    def test_bad_input_is_named_with_exit_code_2(self):
        short, public = self.secret("short", "0123")[1], self.secret("public", TOKEN)[1]
        os.chmod(public, 0o644)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            for options, cause in (
                    (["--metrics", "9100"], "--metrics: error: '9100' is not an address; expected HOST:PORT"),
                    (["--metrics", "0.0.0.0:0"], "--metrics: error: '0.0.0.0:0' is not on the loopback, where metrics "
                                                 "need a token; expected MNEME_METRICS_TOKEN=$(openssl rand -hex 32)"),
                    (["--metrics-token", public], "--metrics-token is for processes with --metrics HOST:PORT"),
                    (["--metrics", "0.0.0.0:0", "--metrics-token", public], "can be read by others"),
                    (["--metrics", "0.0.0.0:0", "--metrics-token", short], "has 4 characters; expected at least 16"),
                    (["--metrics", f"127.0.0.1:{taken.getsockname()[1]}"], "cannot listen on port")):
                for command in (["run", SCENARIO, "--out", self.out()], ["node", "--join", "127.0.0.1:1"]):
                    done = mneme(*command, *options)
                    self.assertEqual((done.returncode, done.stdout), (2, ""), f"{command} {options}: {done.stderr}")
                    self.assertIn(cause, done.stderr)


if __name__ == "__main__":
    run_tests()
