"""Runs whose clients are computed by nodes on the loopback: equal digests, lost nodes, bad peers, bad input."""
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import zlib  # noqa: F401  its library is copied below
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_data  # noqa: E402
from node_processes import LONG, Link, NodesCase, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from node_streams import DamagedMessage  # noqa: E402
from node_streams import Link as ForgingLink  # noqa: E402

FIRST_START = 3  # message number in a run without files: hello, offer, begin, start


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
    def test_one_two_and_four_nodes_give_the_digest_of_one_process(self):
        nodes = [self.node("--threads", str(threads)) for threads in (1, 2, 1, 1)]
        for name in ("fedasync", "stsa", "fil-ver", "devices"):
            scenario = f"scenarios/smoke/{name}.toml"
            alone = self.summary(scenario, "--threads", "2")
            for count, threads in ((1, "1"), (2, "2"), (4, "1")):
                addresses = ",".join(node.address for node in nodes[:count])
                found = self.summary(scenario, "--threads", threads, "--nodes", addresses)
                self.assertEqual(found["run_digest"], alone["run_digest"], f"{name}, {count} nodes")
                self.assertEqual(len(found["nodes"]), count)
                self.assertEqual(sum(node["losses"] for node in found["nodes"]), 0)
                self.assertGreaterEqual(sum(node["client_rounds"] for node in found["nodes"]), found["client_rounds"])
                self.assertGreater(min(node["bytes_received"] for node in found["nodes"]), 0)

    def test_a_broadcast_crosses_once_for_all_clients_of_a_node(self):
        node = self.node("--threads", "1")
        found = self.summary("scenarios/smoke/fedavg.toml", "--nodes", node.address, *words(
            ["clients.count=100", "rounds.cohort=100", "rounds.per_task=1", "tasks.count=1", "tasks.kind=\"single\"",
             "model.hidden=[4000]"]))
        weights = found["download_bytes"] / 100
        self.assertLess(found["nodes"][0]["bytes_sent"], 1.2 * weights)

    def test_nodes_that_are_killed_or_stopped_change_nothing(self):
        scenario, settings = LONG
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        lost, stopped, healthy = (self.node("--threads", "1") for _ in range(3))
        addresses = ",".join(node.address for node in (lost, stopped, healthy))
        process, folder = self.begun(scenario, "--threads", "1", "--nodes", addresses, *words(
            [*settings, "worker.node_silence=\"1 s\""]))
        lost.process.kill()
        stopped.stop()
        found, said = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.assertEqual([node["losses"] for node in found["nodes"]], [1, 1, 0], said)
        self.assertIn(f"node {lost.address} is lost", said)
        self.assertIn("has given no sign of life for 1000 ms", said)

    def test_without_any_node_the_run_goes_on_by_itself_or_waits_for_one(self):
        scenario, settings = LONG
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        for what_then in ("here", "wait"):
            node = self.node("--threads", "1")
            process, folder = self.begun(scenario, "--threads", "1", "--nodes", node.address, *words(
                [*settings, f"worker.without_nodes=\"{what_then}\""]))
            node.end()
            if what_then == "wait":
                time.sleep(1)
                self.assertIsNone(process.poll())
                self.node("--threads", "1", port=node.port)
            found, said = self.ended(process, folder)
            self.assertEqual(found["run_digest"], alone["run_digest"])
            self.assertEqual(found["nodes"][0]["losses"], 1, said)

    def test_a_list_of_nodes_is_read_again_at_sighup(self):
        """The first node stops responding, so the run cannot end before the second one is listed."""
        scenario, settings = LONG[0], ["rounds.per_task=800"]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        first, second = (self.node("--threads", "1") for _ in range(2))
        link = Link(first.port)
        self.addCleanup(link.close)
        listed = os.path.join(self.scratch.name, "nodes")

        def name(*addresses):
            with open(listed, "w", encoding="utf-8") as file:
                file.write("".join(address + "\n" for address in addresses))
            process.send_signal(signal.SIGHUP)

        with open(listed, "w", encoding="utf-8") as file:
            file.write(link.address + "\n")
        process, folder = self.begun(scenario, "--threads", "1", "--nodes", "@" + listed, *words(
            [*settings, "worker.node_silence=\"60 s\""]))
        link.is_cut = True
        name(link.address, second.address)
        second.wait_for("has loaded")
        name("nonsense")
        time.sleep(0.3)
        name(second.address)
        found, said = self.ended(process, folder)
        link.is_cut = False
        first.wait_for("waits for the next run")
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.assertEqual([node["address"] for node in found["nodes"]], [link.address, second.address])
        self.assertGreater(found["nodes"][1]["client_rounds"], 0)
        for line in (f"node {second.address} takes part, with 1 workers", "'nonsense' is no address of a node",
                     "the nodes stay what they were", f"node {link.address} is lost: it is not named any more"):
            self.assertIn(line, said)

    def test_a_node_that_joins_takes_work_although_no_shard_is_ever_idle(self):
        scenario, settings = "scenarios/smoke/fedasync.toml", ["rounds.per_task=3000"]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        first, second = (self.node("--threads", "1") for _ in range(2))
        listed = os.path.join(self.scratch.name, "nodes")
        with open(listed, "w", encoding="utf-8") as file:
            file.write(first.address + "\n")
        process, folder = self.begun(scenario, "--threads", "1", "--nodes", "@" + listed, *words(settings))
        with open(listed, "a", encoding="utf-8") as file:
            file.write(second.address + "\n")
        process.send_signal(signal.SIGHUP)
        found, _ = self.ended(process, folder)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        for node in found["nodes"]:
            self.assertGreater(node["client_rounds"], 0, found["nodes"])

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
        node = self.node("--threads", "1")
        sent = []
        for _ in range(2):
            alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1", *named)
            found = self.summary("scenarios/smoke/fedavg.toml", "--nodes", node.address, *named)
            self.assertEqual(found["run_digest"], alone["run_digest"])
            sent.append(found["nodes"][0]["bytes_sent"])
        bytes_of_files = sum(os.path.getsize(path) for path in files.values())
        self.assertAlmostEqual(sent[0] - sent[1], bytes_of_files, delta=0.2 * bytes_of_files)
        self.summary("scenarios/smoke/module.toml", "--nodes", node.address)
        kept = [name for folder, _, names in os.walk(self.scratch.name) for name in names
                if os.path.basename(folder).startswith("mneme-node-")]
        self.assertEqual(sorted(re.sub(r"^[0-9a-f]{32}", "DIGEST", name) for name in kept),
                         ["DIGEST.csv", "DIGEST.csv", "DIGEST.pt", "DIGEST.safetensors", "lock"])

    def test_a_module_is_tried_by_a_program_that_knows_nothing_of_the_node(self):
        """The reason of a refusal is sent to a peer; a fork of the node would contain the memory of earlier runs."""
        node = self.node("--threads", "1")
        run = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/module.toml", "--nodes", node.address, "--quiet",
                                "--out", self.out()], cwd=ROOT)
        self.addCleanup(self.let_go, run)
        begun_as = set()
        while run.poll() is None:
            begun_as |= {line[1] for line in command_lines_below(node.process.pid) if len(line) > 1}
        self.assertEqual(run.returncode, 0)
        self.assertEqual(begun_as - {b"node"}, {b"cell"})  # between vfork and exec it shows the node's command line

    def test_a_projection_file_is_sent_like_weights(self):
        named = self.projection()
        node = self.node("--threads", "1")
        alone = self.summary("scenarios/smoke/stsa.toml", *named)
        found = self.summary("scenarios/smoke/stsa.toml", "--nodes", node.address, *named)
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
            node = self.node("--threads", "1", environment={**os.environ, **environment})
            with open(f"/proc/{node.process.pid}/smaps", encoding="ascii", errors="replace") as file:
                flags = [line.split() for line in file if line.startswith("VmFlags:")]
            self.assertEqual(any("hg" in line for line in flags), wanted)

    def test_a_node_outlives_its_runs_and_serves_one_at_a_time(self):
        scenario, _ = LONG
        node = self.node("--threads", "1")
        process, _ = self.begun(scenario, "--nodes", node.address, *words(["rounds.per_task=100000"]))
        refused = mneme("run", scenario, "--nodes", node.address, "--out", self.out())
        self.assertEqual(refused.returncode, 2)
        self.assertIn("works for another run", refused.stderr)
        self.assertIn('"state":"works"', mneme("node", "--status", node.address).stdout)
        process.kill()
        process.wait()
        node.wait_for("waits for the next run")
        self.assertIn('"state":"waits"', mneme("node", "--status", node.address).stdout)
        self.summary("scenarios/smoke/fedavg.toml", "--nodes", node.address)

    def test_a_run_that_waits_for_nodes_can_be_interrupted_and_goes_on_without_them(self):
        scenario, settings = LONG
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        node = self.node("--threads", "1")
        process, folder = self.begun(scenario, "--nodes", node.address, *words(
            [*settings, "worker.without_nodes=\"wait\"", "checkpoint.force=true"]))
        node.end()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130, said)
        done = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone["run_digest"])

    def test_figures_for_prometheus(self):
        node = self.node("--threads", "1", "--metrics-port", "0")
        self.summary("scenarios/smoke/fedavg.toml", "--nodes", node.address)
        node.wait_for("waits for the next run")
        with urllib.request.urlopen(node.wait_for(r"tells Prometheus at (\S+)"), timeout=10) as answer:
            text = answer.read().decode()
        self.assertIn("\nmneme_node_runs_total 1\n", text)
        self.assertIn("\nmneme_node_working 0\n", text)
        self.assertIn("\nmneme_node_queued_batches 0\n", text)

    def test_a_run_tells_prometheus_of_its_nodes(self):
        scenario, _ = LONG
        node = self.node("--threads", "1")
        process, _ = self.begun(scenario, "--nodes", node.address, "--serve", "0", *words(
            ["rounds.per_task=100000", "worker.without_nodes=\"wait\""]))
        place = next(found for found in map(re.compile(r"(http://\S+/)").search, process.stdout) if found).group(1)

        def figure(name, label="node", value=node.address):
            with urllib.request.urlopen(place + "metrics", timeout=10) as answer:
                return float(re.search(rf'^{name}{{{label}="{value}"}} (\S+)$', answer.read().decode(), re.M)[1])

        until = time.monotonic() + 60
        while not figure("mneme_run_node_client_rounds_total") and time.monotonic() < until:
            time.sleep(0.05)
        self.assertGreater(figure("mneme_run_node_client_rounds_total"), 0)
        self.assertGreater(figure("mneme_run_node_received_bytes_total"), 0)
        self.assertEqual(figure("mneme_run_node_up"), 1)
        self.assertGreaterEqual(figure("mneme_run_node_waiting_bytes"), 0)
        self.assertEqual(figure("mneme_queued_batches", "asked_by", "clients"), 0)  # they wait on the node
        node.end()
        # The connection ends before the run gets the message.
        while not figure("mneme_run_node_losses_total") and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual((figure("mneme_run_node_up"), figure("mneme_run_node_losses_total")), (0, 1))

    def test_what_a_killed_node_leaves_behind_goes_when_another_begins(self):
        def folders():
            return [name for name in os.listdir(self.scratch.name) if name.startswith("mneme-node-")]

        killed, kept = (self.node("--threads", "1") for _ in range(2))
        self.assertEqual(len(folders()), 2)
        killed.end()
        self.assertEqual(len(folders()), 2)
        self.node("--threads", "1")
        self.assertEqual(len(folders()), 2)
        self.assertIn('"waits"', mneme("node", "--status", kept.address).stdout)

    def test_certificates_that_are_expired_or_sign_themselves_are_not_believed(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl to make them with")
        ours = self.keys()
        folder = os.path.join(self.scratch.name, "ours")
        node = self.node("--threads", "1", *ours)
        key = os.path.join(self.scratch.name, "bad.key")
        made = {name: os.path.join(self.scratch.name, name + ".pem") for name in ("self", "request", "expired")}
        subject = ["req", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-subj", b"/CN=bad\xff\x1b[31m"]
        for command in (subject + ["-x509", "-out", made["self"]],
                        subject + ["-new", "-out", made["request"]],
                        ["x509", "-req", "-in", made["request"], "-CA", f"{folder}/ca.pem", "-CAkey",
                         f"{folder}/ca.key", "-CAcreateserial", "-days", "-1", "-out", made["expired"]]):
            subprocess.run(["openssl", *command], check=True, capture_output=True)
            if command[-1] == made["request"]:
                continue
            refused = mneme("node", "--status", node.address, "--cert", command[-1], "--key", key, "--ca",
                            f"{folder}/ca.pem")
            self.assertEqual(refused.returncode, 2, command)
        for cause in ("self-signed certificate", "certificate has expired"):
            node.wait_for("shows a certificate that is not believed: " + cause)
        self.assertNotIn("bad", node.text())  # nor any other byte of the subject
        self.assertIn('"state"', mneme("node", "--status", node.address, *ours).stdout)

    def test_a_certificate_that_names_hosts_is_believed_of_these_alone(self):
        if not shutil.which("openssl"):
            self.skipTest("no openssl to make them with")
        ours = self.keys()
        folder = os.path.join(self.scratch.name, "ours")
        for names, is_believed in (("DNS:elsewhere.example,IP:192.0.2.7", False), ("IP:127.0.0.1", True)):
            pair = [os.path.join(self.scratch.name, name) for name in ("named.pem", "named.key", "request", "names")]
            with open(pair[3], "w", encoding="utf-8") as file:
                file.write(f"subjectAltName={names}\n")
            for command in (["req", "-newkey", "rsa:2048", "-nodes", "-keyout", pair[1], "-subj", "/CN=node", "-out",
                             pair[2]],
                            ["x509", "-req", "-in", pair[2], "-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca.key",
                             "-CAcreateserial", "-extfile", pair[3], "-out", pair[0]]):
                subprocess.run(["openssl", *command], check=True, capture_output=True)
            node = self.node("--threads", "1", "--cert", pair[0], "--key", pair[1], "--ca", f"{folder}/ca.pem")
            asked = mneme("node", "--status", node.address, *ours)
            self.assertEqual(asked.returncode, 0 if is_believed else 2, asked.stderr)
            if not is_believed:
                self.assertIn("shows a certificate for other hosts than 127.0.0.1", asked.stderr)

    def test_bad_peers_harm_nobody(self):
        node = self.node("--threads", "1")
        scenario, settings = LONG
        self.summary(scenario, "--threads", "1", "--nodes", node.address, *words(settings))
        before = node.resident_kib()
        process, folder = self.begun(scenario, "--threads", "1", "--nodes", node.address, *words(settings))
        peers = []
        for said in (b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096), b"mneme\n\x07\x00", b"", b"mne",
                     b"mneme\n\x01\x00\xff\xff\xff\xff\x02\0\0\0",
                     b"mneme\n\x01\x00\x08\0\0\0\x01\0\0\0\xff\xff\xff\xff\0\0\0\0",
                     b"mneme\n\x01\x00\x08\0\0\0\x01\0\0\0\x03\0\0\0\0\0\0\0\x03\0\0\0\x02\0\0\0abc"):
            peer = socket.create_connection(("127.0.0.1", node.port))
            peer.sendall(said)
            peers.append(peer)
        for line in ("does not speak mneme's protocol", "speaks version 7 of the protocol; expected 1",
                     "sends a frame of kind 2 with 4294967295 bytes", "announces a message of 4294967295 bytes",
                     "sends a message that"):
            node.wait_for(re.escape(line))
        for _ in range(1000):  # silent peers are evicted for new ones
            peers.append(socket.create_connection(("127.0.0.1", node.port)))
        found, _ = self.ended(process, folder)
        self.assertEqual(found["nodes"][0]["losses"], 0)
        for peer in peers:
            peer.close()
        self.assertIn('"state":"waits"', mneme("node", "--status", node.address).stdout)
        self.assertLess(node.resident_kib() - before, 64 * 1024)
        node.wait_for("has not said who it is, while too many others come")

    def test_a_node_drops_who_sends_weights_of_another_size(self):
        node = self.node("--threads", "1")
        link = ForgingLink(node.port, passing=DamagedMessage(FIRST_START, with_a_number_less))
        self.addCleanup(link.close)
        alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1")
        found = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1", "--nodes", link.address)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.assertEqual(found["nodes"][0]["losses"], 1)
        node.wait_for("has asked for what cannot be done: .*start weights are Float")
        self.assertIsNone(node.process.poll())

    def test_a_node_that_loads_answers_and_notices_that_its_run_is_gone_and_ends_when_it_is_told_to(self):
        node = self.node("--threads", "1")
        slow = words(["data.name=\"synthetic\"", "data.shape=[3, 64, 64]", "data.rows=20000"])
        for runs in (1, 2):
            run = subprocess.Popen([PROGRAM, "run", "scenarios/smoke/fedavg.toml", "--nodes", node.address, "--out",
                                    self.out(), *slow], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(run.wait)
            self.addCleanup(run.kill)
            node.wait_for("(?s)" + "serves the run.*" * runs)
            status = mneme("node", "--status", node.address)
            self.assertIn('"state":"loads"', status.stdout, node.text())
            if "waits for the next run" in node.text():
                break
            run.kill()
            node.wait_for("waits for the next run")
            self.assertNotIn("has loaded", node.text())
        node.process.send_signal(signal.SIGTERM)
        self.assertEqual(node.process.wait(timeout=20), 130)
        self.assertNotIn("has loaded", node.text())
        self.assertEqual([name for name in os.listdir(self.scratch.name) if name.startswith("mneme-node-")], [])

    def test_nodes_with_keys_serve_those_who_have_them(self):
        keys = {owner: self.keys(owner) for owner in ("ours", "theirs")}
        node = self.node("--threads", "1", *keys["ours"])
        scenario = "scenarios/smoke/fedavg.toml"
        alone = self.summary(scenario)
        found = self.summary(scenario, "--nodes", node.address, *keys["ours"])
        self.assertEqual(found["run_digest"], alone["run_digest"])
        for options, cause in ((keys["theirs"], "shows a certificate that is not believed"),
                               ([], "onnection")):  # closed, or reset
            refused = mneme("run", scenario, "--nodes", node.address, "--out", self.out(), *options)
            self.assertEqual(refused.returncode, 2)
            self.assertIn(cause, refused.stderr)
        self.assertIn('"state"', mneme("node", "--status", node.address, *keys["ours"]).stdout)

    def test_bad_input_is_named_with_exit_code_2(self):
        scenario = "scenarios/smoke/fedavg.toml"
        other = self.node("--threads", "1", environment={**os.environ, "MNEME_KERNELS": "plain"})
        for options, cause in (
                (["run", scenario, "--nodes", "127.0.0.1:1"], "node 127.0.0.1:1: error: cannot be reached"),
                (["run", scenario, "--nodes", "a:1,a:1"], "stands there twice"),
                (["run", scenario, "--nodes", "a"], "'a' is no address of a node"),
                (["run", scenario, "--nodes", "@/there/is/none"], "cannot be read"),
                (["run", scenario, "--nodes", "192.0.2.1:1"], "not on the loopback"),
                (["run", scenario, "--cert", "a"], "are for runs with --nodes"),
                (["run", scenario, "--nodes", "127.0.0.1:1", "--cert", "/there/is/none"], "'/there/is/none' cannot be"),
                (["run", scenario, "--nodes", other.address], "has another instruction set of mneme's kernels: plain"),
                (["node"], "expected one of mneme node --listen"),
                (["node", "--listen", "nowhere"], "--listen: error: 'nowhere' is no address"),
                (["node", "--listen", "0.0.0.0:0"], "not on the loopback"),
                (["node", "--listen", "127.0.0.1:0", "--key", "/there/is/none"], "--cert: error: is missing"),
                (["node", "--status", "127.0.0.1:1"], "cannot be reached")):
            done = mneme(*options, *(["--out", self.out()] if options[0] == "run" else []))
            self.assertEqual((done.returncode, done.stdout), (2, ""), f"{options}: {done.stderr}")
            self.assertIn(cause, done.stderr)

    def test_a_node_of_another_build_is_refused_by_name(self):
        other = os.path.join(self.scratch.name, "mneme")
        shutil.copy(PROGRAM, other)
        with open(other, "ab") as file:
            file.write(b"\0")
        node = self.node("--threads", "1", program=other)
        refused = mneme("run", "scenarios/smoke/fedavg.toml", "--nodes", node.address, "--out", self.out())
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("has another build of mneme: ", refused.stderr)

    def test_a_node_with_another_library_that_decodes_data_is_refused_by_its_name(self):
        with open("/proc/self/maps", encoding="ascii") as file:
            loaded = re.search(r"/\S*/libz\.so\.1\S*", file.read())
        if not loaded:
            self.skipTest("this Python has no zlib of the system's to copy")
        other = os.path.join(self.scratch.name, "libz.so.1")
        shutil.copy(loaded[0], other)
        with open(other, "ab") as file:
            file.write(b"\0")
        node = self.node("--threads", "1", environment={**os.environ, "LD_LIBRARY_PATH": self.scratch.name})
        refused = mneme("run", "scenarios/smoke/fedavg.toml", "--nodes", node.address, "--out", self.out())
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("has another zlib: libz.so.1, ", refused.stderr)
        self.assertIn("has another build of mneme: ", refused.stderr)

    def test_a_node_with_other_data_is_refused_by_name(self):
        full, empty = (os.path.join(self.scratch.name, name) for name in ("full", "empty"))
        write_data(full, "usps")
        os.mkdir(empty)
        usps = ["run", "scenarios/smoke/fedavg.toml", "--set", "data.name=\"usps\""]
        here, there = ({**os.environ, "MNEME_DATA": folder} for folder in (full, empty))
        alone = mneme(*usps, "--out", self.out(), environment=here)
        self.assertEqual(alone.returncode, 0, alone.stderr)
        node = self.node("--threads", "1", environment=there)
        refused = mneme(*usps, "--nodes", node.address, "--out", self.out(), environment=here)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot load the scenario", refused.stderr)


if __name__ == "__main__":
    run_tests()
