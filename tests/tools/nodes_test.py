"""Runs whose clients are computed by nodes on the loopback: equal digests, lost nodes, bad peers, bad input."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_data, write_grey  # noqa: E402
from node_processes import LONG, NodesCase, free_port, kib_of, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from node_streams import DamagedMessage  # noqa: E402
from node_streams import Link as ForgingLink  # noqa: E402

FIRST_START = 2  # message number in a run without files: offer, begin, start


def with_a_number_less(message):
    """Removes the last number of the first tensor with one axis: float32 (6), 1 axis, its length, numbers."""
    assert message[0] == 7, message[0]  # start
    for found in re.finditer(re.escape(b"\x06" + struct.pack("<Q", 1)), message):
        length, = struct.unpack_from("<Q", message, found.end())
        first = found.end() + 8
        if 256 <= length <= (len(message) - first) // 4:
            return (message[:found.end()] + struct.pack("<Q", length - 1) + message[first:first + 4 * (length - 1)]
                    + message[first + 4 * length:])
    raise AssertionError("a start without weights")


def command_lines_below(parent):
    """Command lines of the running children of `parent`."""
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                state, its_parent = file.read().rpartition(")")[2].split()[:2]
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read().split(b"\0")
        except OSError:  # it has ended
            continue
        if int(its_parent) == parent and state != "Z":
            lines.append(line)
    return lines


class Nodes(NodesCase):
    def test_one_two_and_three_nodes_give_the_digest_of_one_process(self):
        """The nodes of a number stay for all scenarios of a command."""
        names = ("fedavg", "fedasync", "stsa", "lga", "fil-ver", "devices")
        scenarios = {name: f"scenarios/smoke/{name}.toml" for name in names}
        for nodes in ((2,), (1, 2), (1, 1, 1)):
            folder = self.out()
            accept, _ = self.cluster(*nodes)
            done = mneme("run", *scenarios.values(), "--quiet", "--out", folder, *accept, "--threads", "1")
            self.assertEqual(done.returncode, 0, done.stderr)
            for name, scenario in scenarios.items():
                found = self.read(os.path.join(folder, name))
                self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "2"), f"{name}, {nodes}")
                self.assertEqual(len(found["nodes"]), len(nodes))
                self.assertEqual(sum(node["disconnects"] for node in found["nodes"]), 0)
                self.assertGreaterEqual(sum(node["client_rounds"] for node in found["nodes"]), found["client_rounds"])
                self.assertGreater(min(node["bytes_received"] for node in found["nodes"]), 0)

    def test_a_broadcast_crosses_once_for_all_clients_of_a_node(self):
        found = self.summary("scenarios/smoke/fedavg.toml", *words(
            ["clients.count=100", "rounds.cohort=100", "rounds.per_task=1", "tasks.count=1", "tasks.kind=\"single\"",
             "model.hidden=[4000]"]), nodes=[1])
        weights = found["download_bytes"] / 100
        self.assertLess(found["nodes"][0]["bytes_sent"], 1.2 * weights)

    def test_nodes_that_are_killed_or_stopped_change_nothing(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        accept, (lost, stopped, _) = self.cluster(1, 1, 1)
        process, folder = self.begun(scenario, "--threads", "1", *accept, *words(
            [*settings, "worker.node_timeout=\"1 s\""]))
        lost.process.kill()
        stopped.stop()
        found, said = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone)
        self.assertEqual(sorted(node["disconnects"] for node in found["nodes"]), [0, 1, 1], said)
        self.assertIn("is lost: it has given no sign of life for 1000 ms", said)

    def test_a_drained_node_gives_its_shards_back_and_nothing_runs_again(self):
        for scenario, settings in ((LONG[0], LONG[1]), ("scenarios/smoke/fedasync.toml", ["rounds.per_task=2000"])):
            alone = self.digest(scenario, "--threads", "1", *words(settings))
            accept, (drained, staying) = self.cluster(1, 1)
            process, folder = self.begun(scenario, "--threads", "1", *accept, *words(settings))
            drained.process.send_signal(signal.SIGTERM)
            self.assertEqual(drained.process.wait(timeout=30), 0, drained.text())
            self.assertIn("has left\n", drained.text())
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], alone)
            self.assertEqual([node["disconnects"] for node in found["nodes"]], [0, 0], said)
            self.assertIn("leaves; its shards move to other hosts", said)
            self.assertEqual(sum(node["client_rounds"] for node in found["nodes"]),
                             self.client_rounds_over(scenario, settings), said)
            self.assertEqual(staying.process.wait(timeout=30), 0)
            self.assertIn("the run is over", staying.text())

    def client_rounds_over(self, scenario, settings):
        """Rounds that an undisturbed node computes."""
        return self.summary(scenario, "--threads", "1", *words(settings), nodes=[1])["nodes"][0]["client_rounds"]

    def test_the_last_node_may_leave_and_the_run_computes_itself(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        accept, (node,) = self.cluster(1)
        process, folder = self.begun(scenario, "--threads", "1", *accept, *words(settings))
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(timeout=30), 0, node.text())
        found, _ = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone)

    def test_after_the_grace_period_a_node_ends_and_its_rounds_run_again(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        address = f"127.0.0.1:{free_port()}"
        node = self.node(address, "--threads", "1", "--grace", "0 s")
        process, folder = self.begun(scenario, "--threads", "1", "--accept", address, "--workers-min", "1",
                                     *words(settings))
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(timeout=30), 0, node.text())
        found, _ = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone)

    def test_without_any_node_the_run_computes_itself_or_waits_for_one(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        for what_then in ("local", "wait"):
            accept, (node,) = self.cluster(1)
            process, folder = self.begun(scenario, "--threads", "1", *accept, *words(
                [*settings, f"worker.no_nodes=\"{what_then}\""]))
            node.end()
            if what_then == "wait":
                time.sleep(1)
                self.assertIsNone(process.poll())
                self.node(accept[1], "--threads", "1")
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], alone)
            self.assertEqual(found["nodes"][0]["disconnects"], 1, said)

    def test_a_node_that_joins_late_takes_work(self):
        for scenario, settings in ((LONG[0], ["rounds.per_task=1000"]),
                                   ("scenarios/smoke/fedasync.toml", ["rounds.per_task=3000"])):
            alone = self.digest(scenario, "--threads", "1", *words(settings))
            accept, (first,) = self.cluster(1)
            process, folder = self.begun(scenario, "--threads", "1", *accept, *words(settings))
            late = self.node(accept[1], "--threads", "1")
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], alone)
            for node in found["nodes"]:
                self.assertGreater(node["client_rounds"], 0, said)
            self.assertEqual(len(found["nodes"]), 2)
            self.assertIn("has joined, with 1 workers", said)
            self.assertEqual([node.process.wait(timeout=30) for node in (first, late)], [0, 0])

    def test_a_run_begins_without_nodes_and_a_node_serves_two_runs_of_a_command(self):
        address, folder = f"127.0.0.1:{free_port()}", self.out()
        node = self.node(address, "--threads", "1")
        done = mneme("run", "scenarios/smoke/fedavg.toml", "--seeds", "1,2", "--quiet", "--out", folder, "--accept",
                     address, "--workers-min", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for seed in ("s1", "s2"):
            self.assertGreater(self.read(os.path.join(folder, seed))["nodes"][0]["client_rounds"], 0)
        self.assertEqual(node.process.wait(timeout=30), 0)
        alone = self.summary("scenarios/smoke/fedavg.toml", "--accept", f"127.0.0.1:{free_port()}")
        self.assertEqual(alone["run_digest"], self.digest("scenarios/smoke/fedavg.toml"))

    def test_files_that_a_scenario_names_are_sent_once_by_their_content(self):
        """One node gets four kinds of files, another a module; their paths exist only for the run."""
        before = self.out()
        self.assertEqual(mneme("run", "scenarios/smoke/fedavg.toml", "--quiet", "--out", before).returncode, 0)
        files = {name: os.path.join(self.scratch.name, name) for name in ("p.csv", "a.csv", "w.safetensors")}
        shutil.copy(os.path.join(before, "model.safetensors"), files["w.safetensors"])
        with open(files["a.csv"], "w", encoding="utf-8") as file:
            file.write("client,from,to\n" + "".join(f"{client},0,100000\n" for client in range(12)))
        named = words([f"model.weights=\"{files['w.safetensors']}\"", "tasks.kind=\"single\"", "tasks.count=1",
                       "partition.kind=\"file\"", f"partition.file=\"{files['p.csv']}\"",
                       "devices.availability=\"file\"", f"devices.availability_file=\"{files['a.csv']}\""])
        with open(files["p.csv"], "w", encoding="utf-8") as file:
            file.write("client,row\n" + "".join(f"{row % 12},{row}\n" for row in range(400)))
        alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1", *named)
        folder = self.out()
        accept, (node,) = self.cluster(1)
        process = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/fedavg.toml", "--out", folder, *accept, *named,
                                    "--set", "rounds.per_task=100000"], cwd=ROOT, stdout=subprocess.DEVNULL)
        self.addCleanup(self.let_go, process)
        node.wait_for("has loaded")
        kept = [name for place, _, names in os.walk(self.scratch.name) for name in names
                if os.path.basename(place).startswith("mneme-node-")]
        self.let_go(process)  # otherwise it takes the cores from the runs below
        self.assertEqual(sorted(re.sub(r"^[0-9a-f]{32}", "DIGEST", name) for name in kept),
                         ["DIGEST.csv", "DIGEST.csv", "DIGEST.safetensors", "lock"])
        found = self.summary("scenarios/smoke/fedavg.toml", *named, nodes=[1])
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.summary("scenarios/smoke/module.toml", nodes=[1])

    def test_a_module_is_tried_by_a_program_that_knows_nothing_of_the_node(self):
        """The reason of a refusal is sent to a peer; a fork of the node would contain the memory of earlier runs."""
        accept, (node,) = self.cluster(1)
        run = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/module.toml", *accept, "--quiet",
                                "--out", self.out()], cwd=ROOT)
        self.addCleanup(self.let_go, run)
        begun_as = set()
        while run.poll() is None:
            begun_as |= {line[1] for line in command_lines_below(node.process.pid) if len(line) > 1}
        self.assertEqual(run.returncode, 0)
        self.assertEqual(begun_as - {b"node"}, {b"cell"})  # between vfork and exec it shows the node's command line

    def test_a_projection_file_is_sent_like_weights(self):
        named = self.projection()
        alone = self.summary("scenarios/smoke/stsa.toml", *named)
        found = self.summary("scenarios/smoke/stsa.toml", *named, nodes=[1])
        self.assertEqual(found["run_digest"], alone["run_digest"])

    def test_memory_comes_in_large_pages_where_the_system_gives_them_to_who_asks(self):
        def setting(path):
            if not os.path.exists(path):
                return ""
            with open(path, encoding="ascii") as file:
                return file.read()

        asks = ("[madvise]" in setting("/sys/kernel/mm/transparent_hugepage/enabled")
                and setting("/proc/sys/vm/nr_hugepages") == "0\n")
        for environment, wanted in (({}, asks), ({"MIMALLOC_LARGE_OS_PAGES": "0"}, False)):
            node = self.node(f"127.0.0.1:{free_port()}", "--threads", "1", environment={**os.environ, **environment})
            node.wait_for("waits for the run")
            with open(f"/proc/{node.process.pid}/smaps", encoding="ascii", errors="replace") as file:
                flags = [line.split() for line in file if line.startswith("VmFlags:")]
            self.assertEqual(any("hg" in line for line in flags), wanted)

    def test_two_runs_cannot_accept_nodes_at_one_address(self):
        scenario, _ = LONG
        accept, (node,) = self.cluster(1)
        process, _ = self.begun(scenario, *accept, *words(["rounds.per_task=100000"]))
        refused = mneme("run", scenario, *accept, "--out", self.out())
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot be listened on: Address already in use", refused.stderr)
        process.kill()
        process.wait()
        node.wait_for("waits for the run at")
        self.summary("scenarios/smoke/fedavg.toml", *accept)
        self.assertEqual(node.process.wait(timeout=30), 0)

    def test_a_run_that_waits_for_nodes_can_be_interrupted_and_resumes_without_them(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        accept, (node,) = self.cluster(1)
        process, folder = self.begun(scenario, *accept, *words(
            [*settings, "worker.no_nodes=\"wait\"", "checkpoint.force=true"]))
        node.end()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        done = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone)

    def test_an_interrupted_run_resumes_with_nodes(self):
        scenario, settings = LONG
        alone = self.digest(scenario, "--threads", "1", *words(settings))
        process, folder = self.begun(scenario, "--threads", "1", *words([*settings, "checkpoint.force=true"]))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        accept, _ = self.cluster(1)
        done = mneme("resume", folder, "--quiet", "--threads", "1", *accept)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone)

    def test_nodes_and_runs_serve_metrics(self):
        scenario, _ = LONG
        address = f"127.0.0.1:{free_port()}"
        node = self.node(address, "--threads", "1", "--metrics-port", "0")
        process, _ = self.begun(scenario, "--accept", address, "--workers-min", "1", "--serve", "0", *words(
            ["rounds.per_task=100000", "worker.no_nodes=\"wait\""]))
        place = next(found for found in map(re.compile(r"(http://\S+/)").search, process.stdout) if found).group(1)

        def metric(name):
            with urllib.request.urlopen(place + "metrics", timeout=10) as answer:
                return float(re.search(rf"^{name}{{node=[^}}]*}} (\S+)$", answer.read().decode(), re.M)[1])

        until = time.monotonic() + 60
        while not metric("mneme_run_node_client_rounds_total") and time.monotonic() < until:
            time.sleep(0.05)
        self.assertGreater(metric("mneme_run_node_client_rounds_total"), 0)
        self.assertGreater(metric("mneme_run_node_received_bytes_total"), 0)
        self.assertEqual(metric("mneme_run_node_up"), 1)
        with urllib.request.urlopen(node.wait_for(r"metrics at (\S+)"), timeout=10) as answer:
            text = answer.read().decode()
        self.assertIn("\nmneme_node_runs_total 1\n", text)
        self.assertIn("\nmneme_node_working 1\n", text)
        node.end()
        while not metric("mneme_run_node_losses_total") and time.monotonic() < until:  # closed before the run knows
            time.sleep(0.05)
        self.assertEqual((metric("mneme_run_node_up"), metric("mneme_run_node_losses_total")), (0, 1))

    def test_what_a_killed_node_leaves_behind_is_removed_by_the_next(self):
        def folders():
            return [name for name in os.listdir(self.scratch.name) if name.startswith("mneme-node-")]

        def waiting():
            node = self.node(f"127.0.0.1:{free_port()}", "--threads", "1")
            node.wait_for("waits for the run")
            return node
        killed, _ = waiting(), waiting()
        self.assertEqual(len(folders()), 2)
        killed.end()
        self.assertEqual(len(folders()), 2)
        waiting()
        self.assertEqual(len(folders()), 2)

    def test_a_node_without_a_run_ends_after_the_idle_timeout(self):
        node = self.node(f"127.0.0.1:{free_port()}", "--idle-timeout", "300 ms")
        self.assertEqual(node.process.wait(timeout=30), 1)
        self.assertIn("within the idle timeout", node.text())
        self.assertEqual(node.text().count("waits for the run"), 1)

    def refused_node(self, trust_of_run, trust_of_node):
        """The output of a node that cannot join, and of the run that waits for it."""
        accept, (node,) = self.cluster(1, trust=trust_of_node)
        node.wait_for("waits for the run")
        done = mneme("run", "scenarios/smoke/fedavg.toml", *accept[:4], *trust_of_run, "--out", self.out(), "--set",
                     "worker.join_timeout=\"2 s\"")
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("0 nodes with 0 workers have joined at", done.stderr)
        self.assertEqual(node.process.wait(timeout=30), 2, node.text())
        return node.text(), done.stderr

    def test_a_node_with_other_data_is_rejected_and_not_counted(self):
        ours, theirs = (os.path.join(self.scratch.name, name) for name in ("ours_data", "theirs_data"))
        write_data(ours, "mnist")
        write_grey(theirs, "mnist", 10, 28, 40, 11)
        scenario = os.path.join(self.scratch.name, "grey.toml")
        with open(scenario, "w", encoding="utf-8") as file:
            file.write("[data]\nname = \"mnist\"\n[clients]\ncount = 2\n[model]\nname = \"linear\"\n"
                       "[strategy]\nname = \"fedavg\"\n")
        accept, (node,) = self.cluster(1, environment={"MNEME_DATA": theirs})
        node.wait_for("waits for the run")
        done = mneme("run", scenario, *accept, "--out", self.out(), environment={**os.environ, "MNEME_DATA": ours})
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertIn("has another data set", done.stderr)
        self.assertEqual(node.process.wait(timeout=30), 2, node.text())

    def test_a_secret_or_certificates_admit_nodes(self):
        alone = self.digest("scenarios/smoke/fedavg.toml")
        for trust in (self.secret("secret", "0123456789abcdef"), self.keys("ours")):
            accept, _ = self.cluster(1, trust=trust)
            self.assertEqual(self.summary("scenarios/smoke/fedavg.toml", *accept)["run_digest"], alone)
        ours, other = self.secret("secret", "0123456789abcdef"), self.secret("other", "0123456789abcdeF")
        node, run = self.refused_node(ours, other)
        self.assertIn("does not have the same secret (MNEME_SECRET or --secret)", node)
        self.assertIn("does not have the same secret", run)
        accept, (open_node,) = self.cluster(1)
        open_node.wait_for("waits for the run")
        self.assertEqual(mneme("run", "scenarios/smoke/fedavg.toml", *accept, *ours, "--out", self.out(), "--set",
                               "worker.join_timeout=\"2 s\"").returncode, 2)
        open_node.wait_for("it may expect MNEME_SECRET or certificates")
        node, run = self.refused_node(self.keys("mine"), self.keys("theirs"))
        self.assertIn("certificate that is not accepted", node + run)

    def test_a_secret_is_private_and_long_enough(self):
        secret = self.secret("secret", "0123456789abcdef")[1]
        os.chmod(secret, 0o640)
        short = self.secret("short", "0123")[1]
        for options, cause in ((["--secret", secret], "can be read by others; .* chmod 600"),
                               (["--secret", short], "has 4 characters; expected at least 16: export MNEME_SECRET="),
                               (["--secret", "/there/is/none"], "cannot be read|No such file")):
            done = mneme("node", "--join", "127.0.0.1:1", *options)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, cause)

    def test_bad_peers_harm_no_run(self):
        scenario, settings = LONG
        accept, _ = self.cluster(1)
        process, folder = self.begun(scenario, "--threads", "1", *accept, *words(["rounds.per_task=2000"]))
        port = int(accept[1].rsplit(":", 1)[1])
        before = kib_of(process.pid, "VmRSS")
        peers = []
        for sent in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"mneme\n\x07\x00", b"", b"mne",
                     b"mneme\n\x02\x00\xff\xff\xff\xff\x02\0\0\0",
                     b"mneme\n\x02\x00\x08\0\0\0\x01\0\0\0\xff\xff\xff\xff\0\0\0\0",
                     b"mneme\n\x02\x00\x08\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\x02\0\0\0abc"):
            peer = socket.create_connection(("127.0.0.1", port))
            peer.sendall(sent)
            peers.append(peer)
        for _ in range(1000):  # silent peers make room for the next
            peers.append(socket.create_connection(("127.0.0.1", port)))
        self.assertLess(kib_of(process.pid, "VmRSS") - before, 64 * 1024)
        found, said = self.ended(process, folder)
        self.assertEqual(found["nodes"][0]["disconnects"], 0, said)
        for line in ("does not speak mneme's protocol", "speaks version 7 of the protocol; expected 2"):
            self.assertIn(line, said)
        for peer in peers:
            peer.close()

    def test_a_node_leaves_a_run_that_sends_weights_of_another_size(self):
        alone = self.digest("scenarios/smoke/fedavg.toml", "--threads", "1")
        port = free_port()
        link = ForgingLink(port, answering=DamagedMessage(FIRST_START, with_a_number_less))
        self.addCleanup(link.close)
        node = self.node(link.address, "--threads", "1")
        found = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1", "--accept", f"127.0.0.1:{port}",
                             "--workers-min", "1")
        self.assertEqual(found["run_digest"], alone)
        self.assertEqual(found["nodes"][0]["disconnects"], 1)
        node.wait_for("has asked for what cannot be done: .*start weights are Float")

    def test_a_node_that_loads_notices_the_end_of_its_run_and_ends_at_sigterm(self):
        slow = words(["data.name=\"synthetic\"", "data.shape=[3, 64, 64]", "data.rows=20000"])
        accept, (node,) = self.cluster(1)

        def slow_run():
            run = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/fedavg.toml", *accept, "--out", self.out(), *slow],
                                   cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(run.wait)
            self.addCleanup(run.kill)
            return run
        run = slow_run()
        node.wait_for("has joined the run")
        run.kill()
        node.wait_for("(?s)has joined.*waits for the run")
        slow_run()
        node.wait_for("(?s)has joined.*has joined")
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(timeout=20), 0, node.text())
        self.assertEqual([name for name in os.listdir(self.scratch.name) if name.startswith("mneme-node-")], [])

    def test_bad_input_is_named_with_exit_code_2(self):
        scenario = "scenarios/smoke/fedavg.toml"
        removed = "nodes connect to the run; start"
        for options, cause in (
                (["run", scenario, "--nodes", "127.0.0.1:1"], "option '--nodes' was removed: " + removed),
                (["node", "--listen", "127.0.0.1:1"], "option '--listen' was removed: " + removed),
                (["node", "--status", "127.0.0.1:1"], "option '--status' was removed: nodes accept no connections"),
                (["run", scenario, "--set", "worker.node_answer=\"1 s\""], "key 'worker.node_answer' was removed: "),
                (["run", scenario, "--accept", "a"], "--accept: error: 'a' is no address"),
                (["run", scenario, "--accept", "192.0.2.1:1"], "not on the loopback"),
                (["run", scenario, "--accept", "0.0.0.0:1"], "expected MNEME_SECRET=$(openssl rand -hex 32)"),
                (["run", scenario, "--cert", "a"], "are for runs with --accept or --distributed"),
                (["run", scenario, "--workers-min", "2"], "--workers-min is for runs with --accept or --distributed"),
                (["run", scenario, "--accept", "127.0.0.1:0", "--cert", "/there/is/none"], "'/there/is/none' cannot"),
                (["run", scenario, "--distributed"], "expected the variables of a launcher; start it with one of:"),
                (["node"], "expected one of mneme node --join"),
                (["node", "--join", "nowhere"], "--join: error: 'nowhere' is no address"),
                (["node", "--join", "127.0.0.1:0"], "port 0 cannot be reached"),
                (["node", "--join", "192.0.2.1:1"], "not on the loopback"),
                (["node", "--join", "127.0.0.1:1", "--grace", "soon"], "--grace: error: 'soon' is no duration"),
                (["node", "--join", "127.0.0.1:1", "--key", "/there/is/none"], "--cert: error: is missing")):
            done = mneme(*options, *(["--out", self.out()] if options[0] == "run" else []))
            self.assertEqual((done.returncode, done.stdout), (2, ""), f"{options}: {done.stderr}")
            self.assertIn(cause, done.stderr)

    def test_nodes_of_another_build_library_or_instruction_set_are_rejected_by_name(self):
        other = os.path.join(self.scratch.name, "mneme")
        shutil.copy(PROGRAM, other)
        with open(other, "ab") as file:
            file.write(b"\0")
        address = f"127.0.0.1:{free_port()}"
        nodes = [(self.node(address, "--threads", "1", **how), cause) for how, cause in (
            ({"program": other}, "has another build of mneme: "),
            ({"environment": {**os.environ, "MNEME_KERNELS": "plain"}},
             "has another instruction set of mneme's kernels: plain"))]
        for node, _ in nodes:
            node.wait_for("waits for the run")
        refused = mneme("run", "scenarios/smoke/fedavg.toml", "--accept", address, "--workers-min", "2", "--out",
                        self.out(), "--set", "worker.join_timeout=\"2 s\"")
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        for node, cause in nodes:
            self.assertIn(cause, refused.stderr)
            self.assertEqual(node.process.wait(timeout=30), 2)
            self.assertIn("rejects this node, because it " + cause, node.text())

    def test_a_node_with_other_data_is_rejected_by_name(self):
        full, empty = (os.path.join(self.scratch.name, name) for name in ("full", "empty"))
        write_data(full, "usps")
        os.mkdir(empty)
        here, there = ({**os.environ, "MNEME_DATA": folder} for folder in (full, empty))
        accept, (node,) = self.cluster(1, environment=there)
        node.wait_for("waits for the run")
        refused = mneme("run", "scenarios/smoke/fedavg.toml", "--set", "data.name=\"usps\"", *accept, "--out",
                        self.out(), "--set", "worker.join_timeout=\"2 s\"", environment=here)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot load the scenario", refused.stderr)
        self.assertEqual(node.process.wait(timeout=30), 2)


if __name__ == "__main__":
    run_tests()
