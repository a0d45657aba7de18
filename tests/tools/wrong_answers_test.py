"""Nodes that send malformed messages or other results: the run continues without them, or ends and names them."""
import os
import re
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from node_streams import ChangedMessages, Link  # noqa: E402
from wave_reports import decoded, encoded  # noqa: E402

STSA = "scenarios/smoke/stsa.toml"
GREETING, OFFER, STATUS = 0, 2, 12  # kinds of messages (actors/nodes/node_messages.hpp)


def changed(message, change):
    report = decoded(message)
    return encoded(change(report)) if report else message


def with_negative_rows(report):
    for done in report["finished"]:
        done["rows"] = -1
    return report


def failing(report):
    """The last finished round has failed instead."""
    if report["finished"]:
        done = report["finished"].pop()
        report["failed"].append({"id": [done["id"], 0, 0], "client": 0, "round": 0,
                                 "reason": b"out of memory\n"})
    return report


def lying(report):
    """Every upload has another first number."""
    for done in report["finished"]:
        for tensor in done["upload"].get("tensors", ()):
            if "data" in tensor:
                tensor["data"] = b"\0\0\x80\x3f" + tensor["data"][4:]
    return report


class WrongAnswers(NodesCase):
    def forged(self, change, *settings, scenario="scenarios/smoke/fedavg.toml"):
        """The link to a node whose messages `change` replaces, and the words of a run that uses it."""
        node = self.node("--threads", "1")
        link = Link(node.port, answering=ChangedMessages(change))
        self.addCleanup(link.close)
        return link, [scenario, "--threads", "1", "--nodes", link.address, *words(settings)]

    def refused_with(self, link, run, alone, reason):
        found = self.summary(*run)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.assertEqual(found["nodes"][0]["losses"], 1)
        self.assertRegex(found["nodes"][0]["wrong"], reason)
        self.assertEqual(link.connections, 1)  # it is not asked again

    def test_a_malformed_report_loses_its_node_and_nothing_else(self):
        alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1")
        link, run = self.forged(lambda message: [changed(message, with_negative_rows)])
        self.refused_with(link, run, alone, "with a weight out of range")

    def test_a_failure_on_a_node_ends_the_run_and_names_the_node(self):
        link, run = self.forged(lambda message: [changed(message, failing)], "clients.count=1", "rounds.cohort=1")
        done = mneme("run", *run, "--quiet", "--out", self.out())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"client 0.*out of memory\? \(on node")

    def test_what_a_node_says_of_itself_is_printable_and_files_are_sent_once(self):
        link, run = self.forged(lambda message: [message[:10] + b"\x1b" + message[11:] if message[0] == 0 else message])
        self.assertEqual(self.summary(*run)["nodes"][0]["name"][0], "?")
        link, run = self.forged(lambda message: [message] * 2 if message[0] == 3 else [message], scenario=STSA)
        refused = mneme("run", *run, *self.projection(), "--out", self.out())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("asks for a file that was not offered, or twice for one", refused.stderr)

    def test_no_byte_of_a_peer_is_obeyed_by_a_terminal_breaks_a_line_or_is_other_than_utf_8(self):
        """Names, facts, reasons and states, from nodes to runs and from runs to nodes, in logs, files and on pipes."""
        scenario, odd = "scenarios/smoke/fedavg.toml", b"\x1b\xff\n\x9b\xc3\x07"
        shown = re.compile(r"[\n -~]*")

        def with_odd(kind, old):
            def change(message):
                if message[0] != kind:
                    return [message]
                at = message.index(old)
                return [message[:at] + odd[:len(old)] + message[at + len(odd[:len(old)]):]]
            return change
        name = socket.gethostname().encode()
        link, run = self.forged(with_odd(GREETING, name[:6]))
        out = self.out()
        done = mneme("run", *run, "--json", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(out)["nodes"][0]["name"], ("??????" + name[6:].decode())[:len(name)])
        self.assertTrue(shown.fullmatch(done.stdout + done.stderr), done.stdout)

        node = self.node("--threads", "1")
        link = Link(node.port, passing=ChangedMessages(with_odd(OFFER, b"fedavg")))  # the scenario's name
        self.addCleanup(link.close)
        self.summary(scenario, "--threads", "1", "--nodes", link.address)
        self.assertEqual(node.wait_for("has loaded (.*)"), "?? ???")
        link = Link(node.port, passing=ChangedMessages(with_odd(GREETING, b"LibTorch")))  # a fact to agree on
        self.addCleanup(link.close)
        refused = mneme("run", scenario, "--nodes", link.address, "--out", self.out())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        node.wait_for(r"is another program: this node has another \?\? \?\?\?ch: unknown")
        self.assertFalse([line for line in node.text().splitlines() if not line.startswith("node: ")], node.text())
        self.assertTrue(shown.fullmatch(node.text()), node.text())

        link = Link(node.port, answering=ChangedMessages(with_odd(STATUS, b'waits"')))
        self.addCleanup(link.close)
        asked = mneme("node", "--status", link.address)
        self.assertEqual((asked.returncode, asked.stdout), (2, ""))
        self.assertIn("answers something else than a JSON object", asked.stderr)

    def test_who_asks_for_a_status_is_ended_by_no_signal_where_the_peer_or_the_reader_goes_away(self):
        def going(act):
            peer = socket.create_server(("127.0.0.1", 0))
            self.addCleanup(peer.close)

            def serve():
                near, _ = peer.accept()
                act(near)
                near.close()
            threading.Thread(target=serve, daemon=True).start()
            return f"127.0.0.1:{peer.getsockname()[1]}"

        def reset(near):
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for act in (lambda near: None, lambda near: near.recv(5), reset, lambda near: (near.recv(1), reset(near)),
                    lambda near: (near.recv(100), near.sendall(b"\x10\0\0\0ab"))):
            address = going(act)
            asked = mneme("node", "--status", address)
            self.assertEqual((asked.returncode, asked.stdout), (2, ""), asked.stderr)
            self.assertRegex(asked.stderr, f"^node {address}: error: ")
        node = self.node("--threads", "1")
        reading, writing = os.pipe()
        os.close(reading)
        with os.fdopen(writing, "w") as nowhere:
            asked = subprocess.run([PROGRAM, "node", "--status", node.address], stdout=nowhere, stderr=subprocess.PIPE,
                                   check=False)
        self.assertEqual((asked.returncode, asked.stderr), (0, b""))

    def test_a_sampled_round_with_another_result_ends_the_run_and_removes_its_checkpoints(self):
        scenario, settings = "scenarios/smoke/fedavg.toml", ["checkpoint.force=true", "worker.verify_share=1.0"]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        node = self.node("--threads", "1")
        honest = self.summary(scenario, "--threads", "1", "--nodes", node.address, *words(settings))
        self.assertEqual(honest["run_digest"], alone["run_digest"])
        reports = []

        def lying_later(message):
            reports.append(message)
            return [changed(message, lying) if len(reports) > 10 else message]
        link, run = self.forged(lying_later, *settings)
        folder = self.out()
        done = mneme("run", *run, "--quiet", "--out", folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, f"node {link.address} finishes assignment .* with another result than this")
        self.assertEqual([name for name in os.listdir(os.path.join(folder, "checkpoint")) if "checkpoint" in name], [])
        resumed = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone["run_digest"])


if __name__ == "__main__":
    run_tests()
