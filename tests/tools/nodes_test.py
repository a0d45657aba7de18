"""Runs whose clients are computed by nodes on the loopback: equal digests, lost nodes, bad peers, bad input."""
import contextlib
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_data, write_gray  # noqa: E402
from node_processes import NodesCase, free_port, kib_of, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, needs_nodes, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from node_streams import DamagedMessage  # noqa: E402
from node_streams import Link as ForgingLink  # noqa: E402

setUpModule = needs_nodes

FIRST_START = 2  # message number in a run without files: offer, begin, start
# Late uploads are kept over rounds and tasks.
SCENARIO, SETTINGS = "scenarios/smoke/fedprox.toml", words(["rounds.per_task=4"])
ASYNC, ASYNC_SETTINGS = "scenarios/smoke/fedasync.toml", words(["rounds.per_task=20"])
# Rounds of several stages: a node that leaves between two of them would lose the results of the first.
STAGES, STAGES_SETTINGS = "scenarios/smoke/stsa.toml", words(["rounds.per_task=4"])
ENDLESS = words(["rounds.per_task=100000"])


def with_a_number_less(message):
    """Removes the last number of the first tensor with one axis. Its bytes: float32 (6), 1 axis, length, numbers."""
    assert message[0] == 7, message[0]  # start
    for found in re.finditer(re.escape(b"\x06" + struct.pack("<Q", 1)), message):
        length, = struct.unpack_from("<Q", message, found.end())
        first = found.end() + 8
        if 256 <= length <= (len(message) - first) // 4:
            return (message[:found.end()] + struct.pack("<Q", length - 1) + message[first:first + 4 * (length - 1)]
                    + message[first + 4 * length:])
    raise AssertionError("a start without weights")


def command_lines_below(parent):
    """Returns the command lines of the running children of `parent`."""
    lines = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                state, its_parent = file.read().rpartition(")")[2].split()[:2]
            with open(f"/proc/{name}/cmdline", "rb") as file:
                line = file.read().split(b"\0")
        except OSError:  # the child has ended
            continue
        if int(its_parent) == parent and state != "Z":
            lines.append(line)
    return lines


class Nodes(NodesCase):
    def test_one_two_and_three_nodes_give_the_digest_of_one_process(self):
        """The same nodes compute all scenarios of a command. LGA takes as long as all others together."""
        for nodes, names in (((2,), ("fedavg", "stsa", "devices")),
                             ((1, 2), ("fedasync", "fil-ver", "lga")),
                             ((1, 1, 1), ("fedavg", "fedasync", "stsa", "fil-ver", "devices"))):
            folder, scenarios = self.out(), {name: f"scenarios/smoke/{name}.toml" for name in names}
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

    def test_two_nodes_give_the_digest_of_one_process_with_upload_steps(self):
        """Client memories contain the error feedback; noise and rules are applied in the run's process."""
        folder, scenarios = self.out(), {name: f"scenarios/smoke/{name}.toml"
                                         for name in ("uploads", "robust", "dp-fedavg", "dp-ftrl")}
        accept, _ = self.cluster(1, 1)
        done = mneme("run", *scenarios.values(), "--quiet", "--out", folder, *accept, "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        for name, scenario in scenarios.items():
            self.assertEqual(self.read(os.path.join(folder, name))["run_digest"], self.digest(scenario), name)

    def test_a_broadcast_is_sent_once_for_all_clients_of_a_node(self):
        found = self.summary("scenarios/smoke/fedavg.toml", *words(
            ["clients.count=100", "rounds.cohort=100", "rounds.per_task=1", "tasks.count=1", "tasks.kind=\"single\"",
             "model.hidden=[4000]"]), nodes=[1])
        weights = found["download_bytes"] / 100
        self.assertLess(found["nodes"][0]["bytes_sent"], 1.2 * weights)

    def test_killing_or_stopping_nodes_keeps_the_digest(self):
        process, folder, (lost, stopped, _), _ = self.stalled(
            SCENARIO, *SETTINGS, *words(["worker.node_timeout=\"1 s\""]), others=2)
        lost.process.kill()
        stopped.stop()
        found, said = self.ended(process, folder)
        self.assertEqual(found["run_digest"], self.digest(SCENARIO, *SETTINGS))
        self.assertGreaterEqual(sorted(node["disconnects"] for node in found["nodes"])[1], 1, said)
        self.assertIn("is lost: it has sent no heartbeat for 1000 ms", said)

    def test_a_drained_node_gives_its_shards_back_and_no_round_is_rerun(self):
        for scenario, settings in ((SCENARIO, SETTINGS), (ASYNC, ASYNC_SETTINGS), (STAGES, STAGES_SETTINGS)):
            process, folder, (drained, staying), stall = self.stalled(scenario, *settings, others=1)
            drained.process.send_signal(signal.SIGTERM)
            drained.wait_for("leaves the run")
            stall.release()
            self.assertEqual(drained.process.wait(timeout=60), 0, drained.text())
            self.assertIn("has left\n", drained.text())
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], self.digest(scenario, *settings))
            for count in ("disconnects", "rounds_rerun"):
                self.assertEqual([node[count] for node in found["nodes"]], [0, 0], said)
            self.assertIn("leaves; its shards move to other hosts", said)
            undisturbed = self.summary(scenario, "--threads", "1", *settings, nodes=[1])["nodes"][0]
            self.assertEqual(sum(node["client_rounds"] for node in found["nodes"]), undisturbed["client_rounds"], said)
            self.assertEqual(staying.process.wait(timeout=60), 0)
            self.assertIn("the run is over", staying.text())

    def test_the_run_computes_locally_after_the_last_node_has_left(self):
        process, folder, (node,), stall = self.stalled(SCENARIO, *SETTINGS)
        node.process.send_signal(signal.SIGTERM)
        node.wait_for("leaves the run")
        stall.release()
        self.assertEqual(node.process.wait(timeout=60), 0, node.text())
        self.assertEqual(self.ended(process, folder)[0]["run_digest"], self.digest(SCENARIO, *SETTINGS))

    def test_after_the_grace_period_a_node_ends_and_its_rounds_are_rerun(self):
        process, folder, (node,), _ = self.stalled(SCENARIO, *SETTINGS, node_options=("--grace", "0 s"))
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(timeout=60), 0, node.text())
        self.assertIn("its rounds are rerun on other hosts", node.text())
        found, said = self.ended(process, folder)
        self.assertEqual(found["run_digest"], self.digest(SCENARIO, *SETTINGS))
        self.assertEqual(found["nodes"][0]["disconnects"], 1, said)

    def test_without_nodes_the_run_computes_locally_or_waits(self):
        for what_then in ("local", "wait"):
            process, folder, (node,), _ = self.stalled(
                SCENARIO, *SETTINGS, *words([f"worker.no_nodes=\"{what_then}\""]))
            node.end()
            late = self.node(node.address, "--threads", "1") if what_then == "wait" else None
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], self.digest(SCENARIO, *SETTINGS))
            self.assertEqual(found["nodes"][0]["disconnects"], 1, said)
            if late:
                self.assertGreater(found["nodes"][1]["client_rounds"], 0, said)

    def test_a_node_that_joins_late_gets_shards(self):
        """The first node gets no work until the other has joined, so neither can finish the run alone."""
        for scenario, settings in ((SCENARIO, SETTINGS), (ASYNC, ASYNC_SETTINGS)):
            process, folder, (first,), stall = self.stalled(scenario, *settings)
            late = self.node(first.address, "--threads", "1")
            next(line for line in process.stdout if "has joined, with 1 workers" in line)
            stall.release()
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], self.digest(scenario, *settings))
            self.assertEqual(len(found["nodes"]), 2)
            for node in found["nodes"]:
                self.assertGreater(node["client_rounds"], 0, said)
            self.assertEqual([node.process.wait(timeout=60) for node in (first, late)], [0, 0])

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
        """A node stores these files under their checksums. Another test sends a module."""
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
        self.let_go(process)  # otherwise it competes with the runs below for the cores
        self.assertEqual(sorted(re.sub(r"^[0-9a-f]{32}", "DIGEST", name) for name in kept),
                         ["DIGEST.csv", "DIGEST.csv", "DIGEST.safetensors", "lock"])
        found = self.summary("scenarios/smoke/fedavg.toml", *named, nodes=[1])
        self.assertEqual(found["run_digest"], alone["run_digest"])

    def test_a_module_is_probed_by_a_process_without_the_nodes_memory(self):
        """The run receives the reason of a rejection. If the probe were a fork of the node, the reason could contain
        memory of earlier runs."""
        accept, (node,) = self.cluster(1)
        run = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/module.toml", *accept, "--quiet",
                                "--out", self.out()], cwd=ROOT)
        self.addCleanup(self.let_go, run)
        begun_as = set()
        while run.poll() is None:
            time.sleep(0.005)
            begun_as |= {line[1] for line in command_lines_below(node.process.pid) if len(line) > 1}
        self.assertEqual(run.returncode, 0)
        self.assertEqual(begun_as - {b"node"}, {b"sandbox"})  # between vfork and exec it shows the node's command line

    def test_a_projection_file_is_sent_like_weights(self):
        named = self.projection()
        alone = self.summary("scenarios/smoke/stsa.toml", *named)
        found = self.summary("scenarios/smoke/stsa.toml", *named, nodes=[1])
        self.assertEqual(found["run_digest"], alone["run_digest"])

    def test_memory_uses_huge_pages_if_the_system_offers_them(self):
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
        accept, (node,) = self.cluster(1)
        process, _ = self.begun(SCENARIO, *accept, *ENDLESS)
        refused = mneme("run", SCENARIO, *accept, "--out", self.out())
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot be listened on: Address already in use", refused.stderr)
        process.kill()
        process.wait()
        node.wait_for("waits for the run at")
        self.summary("scenarios/smoke/fedavg.toml", *accept)
        self.assertEqual(node.process.wait(timeout=60), 0)

    def test_a_run_that_waits_for_nodes_can_be_interrupted_and_resumes_without_them(self):
        process, folder, (node,), _ = self.stalled(SCENARIO, *SETTINGS, *words(
            ["worker.no_nodes=\"wait\"", "checkpoint.force=true"]))
        node.end()
        next(line for line in process.stdout if "is lost" in line)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        done = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(folder)["run_digest"], self.digest(SCENARIO, *SETTINGS))

    def test_a_killed_run_resumes_with_the_node_that_has_waited(self):
        process, folder, (node,), _ = self.stalled(SCENARIO, *SETTINGS, *words(
            ["checkpoint.force=true", "checkpoint.every=1"]), at=20)
        process.kill()
        process.wait()
        done = mneme("resume", folder, "--quiet", "--threads", "1", "--accept", node.address, "--workers-min", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(folder)["run_digest"], self.digest(SCENARIO, *SETTINGS))
        self.assertEqual(node.process.wait(timeout=60), 0, node.text())

    def test_nodes_end_when_the_first_of_several_runs_is_interrupted(self):
        process, _, (node,), stall = self.stalled(SCENARIO, "--seeds", "1,2", *ENDLESS)
        process.send_signal(signal.SIGINT)
        stall.release()
        said, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 130, said)
        self.assertEqual(node.process.wait(timeout=60), 130, node.text())
        self.assertIn("the run was interrupted", node.text())

    def test_files_of_a_killed_node_are_removed_by_the_next_one(self):
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

    def run_without(self, nodes, *options, **how):
        """Returns the output of a run that waits until these nodes have been rejected."""
        process = self.started(self.out(), *options, **how)
        for node in nodes:
            self.assertEqual(node.process.wait(timeout=60), 2, node.text())
        self.assertIsNone(process.poll())
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("error: interrupted while waiting for nodes", said)
        return said

    def refused_node(self, trust_of_run, trust_of_node):
        """Returns the outputs of a node that cannot join, and of the run that waits for it."""
        accept, (node,) = self.cluster(1, trust=trust_of_node)
        said = self.run_without([node], "scenarios/smoke/fedavg.toml", *accept[:4], *trust_of_run)
        return node.text(), said

    def test_a_node_with_other_data_is_rejected_and_not_counted(self):
        ours, theirs = (os.path.join(self.scratch.name, name) for name in ("ours_data", "theirs_data"))
        write_data(ours, "mnist")
        write_gray(theirs, "mnist", 10, 28, 40, 11)
        scenario = os.path.join(self.scratch.name, "gray.toml")
        with open(scenario, "w", encoding="utf-8") as file:
            file.write("[data]\nname = \"mnist\"\n[clients]\ncount = 2\n[model]\nname = \"linear\"\n"
                       "[strategy]\nname = \"fedavg\"\n")
        accept, (node,) = self.cluster(1, environment={"MNEME_DATA": theirs})
        said = self.run_without([node], scenario, *accept, environment={**os.environ, "MNEME_DATA": ours})
        self.assertIn("has a different data set", said)

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
        run = self.started(self.out(), "scenarios/smoke/fedavg.toml", *accept, *ours)
        open_node.wait_for("it may require MNEME_SECRET or certificates")
        self.let_go(run)
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

    @staticmethod
    def await_end(peer):
        """Waits until the run closes this connection."""
        peer.settimeout(60)
        with contextlib.suppress(ConnectionError):
            while peer.recv(4096):
                pass

    def test_invalid_peers_do_not_affect_a_run(self):
        process, folder, (node,), stall = self.stalled(SCENARIO, *SETTINGS)
        port = int(node.address.rsplit(":", 1)[1])
        before = kib_of(process.pid, "VmRSS")
        peers = []
        for sent in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"mneme\n\x07\x00", b"", b"mne",
                     b"mneme\n\x03\x00\xff\xff\xff\xff\x02\0\0\0",
                     b"mneme\n\x03\x00\x08\0\0\0\x01\0\0\0\xff\xff\xff\xff\0\0\0\0",
                     b"mneme\n\x03\x00\x08\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\x02\0\0\0abc",
                     *(b"mneme\n" + struct.pack("<H", version) for version in range(100, 200))):
            peer = socket.create_connection(("127.0.0.1", port))
            peer.sendall(sent)
            peers.append(peer)
            if len(sent) > 3:  # not silent
                self.await_end(peer)
        for _ in range(1000):  # silent peers are dropped for new ones
            peers.append(socket.create_connection(("127.0.0.1", port)))
        self.assertLess(kib_of(process.pid, "VmRSS") - before, 64 * 1024)
        stall.release()
        found, said = self.ended(process, folder)
        self.assertEqual(found["run_digest"], self.digest(SCENARIO, *SETTINGS))
        self.assertEqual(found["nodes"][0]["disconnects"], 0, said)
        for line in ("does not speak mneme's protocol", "speaks version 7 of the protocol; expected 3",
                     "other reasons for rejecting peers are not reported"):
            self.assertIn(line, said)
        self.assertEqual(said.count(" is rejected: "), 32, said)
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
        node.wait_for("sent a command that a worker of this node could not execute: .*start weights are Float")

    def test_a_loading_node_detects_the_end_of_its_run_and_ends_on_sigterm(self):
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

    def test_advice_names_this_machine_instead_of_all_interfaces(self):
        port = free_port()
        done = mneme("run", SCENARIO, "--accept", f"0.0.0.0:{port}", "--workers-min", "1", *self.secret(), "--out",
                     self.out(), "--set", "worker.join_timeout=\"100 ms\"")
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        self.assertIn(f"0 nodes with 0 workers have joined at 0.0.0.0:{port} within 0 s", done.stderr)
        for advice in ("nodes join with", "start the others with"):
            self.assertIn(f"{advice} mneme node --join {socket.gethostname()}:{port}", done.stderr)

    def test_bad_input_is_named_with_exit_code_2(self):
        scenario = "scenarios/smoke/fedavg.toml"
        removed = "nodes connect to the run; start"
        for options, cause in (
                (["run", scenario, "--nodes", "127.0.0.1:1"], "option '--nodes' was removed: " + removed),
                (["node", "--listen", "127.0.0.1:1"], "option '--listen' was removed: " + removed),
                (["node", "--status", "127.0.0.1:1"], "option '--status' was removed: nodes accept no connections"),
                (["run", scenario, "--set", "worker.node_answer=\"1 s\""], "key 'worker.node_answer' was removed: "),
                (["run", scenario, "--accept", "a"], "--accept: error: 'a' is not an address"),
                (["run", scenario, "--accept", "192.0.2.1:1"], "not on the loopback"),
                (["run", scenario, "--accept", "0.0.0.0:1"], "expected MNEME_SECRET=$(openssl rand -hex 32)"),
                (["run", scenario, "--cert", "a"], "are for runs with --accept or --distributed"),
                (["run", scenario, "--workers-min", "2"], "--workers-min is for runs with --accept or --distributed"),
                (["run", scenario, "--accept", "127.0.0.1:0", "--cert", "/there/is/none"], "'/there/is/none' cannot"),
                (["run", scenario, "--distributed"], "expected the variables of a launcher; start it with one of:"),
                (["node"], "expected one of mneme node --join"),
                (["node", "--join", "nowhere"], "--join: error: 'nowhere' is not an address"),
                (["node", "--join", "127.0.0.1:0"], "port 0 cannot be reached"),
                (["node", "--join", "192.0.2.1:1"], "not on the loopback"),
                (["node", "--metrics-port", "1"], "write --metrics 127.0.0.1:PORT"),
                (["node", "--join", "127.0.0.1:1", "--grace", "soon"], "--grace: error: 'soon' is not a duration"),
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
            ({"program": other}, "has a different build of mneme: "),
            ({"environment": {**os.environ, "MNEME_KERNELS": "plain"}},
             "has a different instruction set of mneme's kernels: plain"))]
        said = self.run_without([node for node, _ in nodes], "scenarios/smoke/fedavg.toml", "--accept", address,
                                "--workers-min", "2")
        for node, cause in nodes:
            self.assertIn(cause, said)
            self.assertIn("rejects this node, because it " + cause, node.text())

    def test_a_node_with_other_data_is_rejected_by_name(self):
        full, empty = (os.path.join(self.scratch.name, name) for name in ("full", "empty"))
        write_data(full, "usps")
        os.mkdir(empty)
        here, there = ({**os.environ, "MNEME_DATA": folder} for folder in (full, empty))
        accept, (node,) = self.cluster(1, environment=there)
        said = self.run_without([node], "scenarios/smoke/fedavg.toml", "--set", "data.name=\"usps\"", *accept,
                                environment=here)
        self.assertIn("cannot load the scenario", said)


if __name__ == "__main__":
    run_tests()
