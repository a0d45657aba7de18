"""Nodes that send malformed messages or other results: the run continues without them, or ends and names them."""
import os
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, free_port, words  # noqa: E402
from program import ROOT, mneme, needs_nodes, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from node_streams import ChangedMessages, Link  # noqa: E402
from wave_reports import decoded, encoded  # noqa: E402

setUpModule = needs_nodes

STSA = "scenarios/smoke/stsa.toml"
GREETING, OFFER = 0, 2  # kinds of messages (actors/nodes/node_messages.hpp)


def changed(message, change):
    report = decoded(message)
    return encoded(change(report)) if report else message


def with_negative_rows(report):
    for done in report["finished"]:
        done["rows"] = -1
    return report


def failing(report):
    """Replaces the last finished round by a failed one."""
    if report["finished"]:
        done = report["finished"].pop()
        report["failed"].append({"id": [done["id"], 0, 0], "client": 0, "round": 0,
                                 "reason": b"out of memory\n"})
    return report


def lying(report):
    """Changes the first number of every upload."""
    for done in report["finished"]:
        for tensor in done["upload"].get("tensors", ()):
            if "data" in tensor:
                tensor["data"] = b"\0\0\x80\x3f" + tensor["data"][4:]
    return report


class WrongAnswers(NodesCase):
    def forged(self, change, *settings, scenario="scenarios/smoke/fedavg.toml", answering=None):
        """Starts a node that joins over a link whose messages `change` replaces. Returns link, run arguments, node."""
        port = free_port()
        link = Link(port, passing=ChangedMessages(change) if change else None,
                    answering=ChangedMessages(answering) if answering else None)
        self.addCleanup(link.close)
        node = self.node(link.address, "--threads", "1")
        return link, [scenario, "--threads", "1", "--accept", f"127.0.0.1:{port}", "--workers-min", "1",
                      *words([*settings, "worker.join_timeout=\"5 s\""])], node

    def refused_with(self, link, run, alone, reason):
        found = self.summary(*run)
        self.assertEqual(found["run_digest"], alone["run_digest"])
        self.assertEqual(found["nodes"][0]["disconnects"], 1)
        self.assertRegex(found["nodes"][0]["rejection_reason"], reason)
        self.assertEqual(link.connections, 1)  # it does not join again

    def test_a_malformed_report_only_disconnects_its_node(self):
        alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1")
        link, run, node = self.forged(lambda message: [changed(message, with_negative_rows)])
        self.refused_with(link, run, alone, "with a weight out of range")
        self.assertEqual(node.process.wait(timeout=30), 2)
        self.assertIn("rejects this node, because it finishes assignment", node.text())

    def test_a_failure_on_a_node_ends_the_run_and_names_the_node(self):
        _, run, _ = self.forged(lambda message: [changed(message, failing)], "clients.count=1", "rounds.cohort=1")
        done = mneme("run", *run, "--quiet", "--out", self.out())
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"client 0.*out of memory\? \(on node")

    def test_node_names_are_made_printable_and_repeated_file_requests_rejected(self):
        def with_escape(message):
            return [message[:17] + b"\x1b" + message[18:] if message[0] == 0 else message]
        _, run, _ = self.forged(with_escape)  # kind, number of the process, length of the name, name
        self.assertEqual(self.summary(*run)["nodes"][0]["name"][0], "?")
        _, run, _ = self.forged(lambda message: [message] * 2 if message[0] == 3 else [message], scenario=STSA)
        refused = mneme("run", *run, *self.projection(), "--out", self.out())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("requests a file that was not offered, or one file twice", refused.stderr)

    def test_text_of_a_peer_is_printed_as_one_line_of_valid_utf_8_without_control_characters(self):
        """Covers names, fingerprints, reasons and states of nodes and runs, in logs, in files and on pipes."""
        odd = b"\x1b\xff\n\x9b\xc3\x07"
        shown = re.compile(r"[\n -~]*")

        def with_odd(kind, old):
            def change(message):
                if message[0] != kind:
                    return [message]
                at = message.index(old)
                return [message[:at] + odd[:len(old)] + message[at + len(odd[:len(old)]):]]
            return change
        name = socket.gethostname().encode()
        _, run, _ = self.forged(with_odd(GREETING, name[:6]))
        out = self.out()
        done = mneme("run", *run, "--json", "--out", out)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.read(out)["nodes"][0]["name"], ("??????" + name[6:].decode())[:len(name)])
        self.assertTrue(shown.fullmatch(done.stdout + done.stderr), done.stdout)

        _, run, node = self.forged(None, answering=with_odd(OFFER, b"fedavg"))  # the scenario's name
        self.summary(*run)
        self.assertEqual(node.wait_for("has loaded (.*)"), "?? ???")
        self.assertTrue(shown.fullmatch(node.text()), node.text())

        _, run, node = self.forged(with_odd(GREETING, b"LibTorch"))  # a field of the fingerprint
        refused = mneme("run", *run, "--out", self.out())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("has a different LibTorch: unknown", refused.stderr)
        self.assertEqual(node.process.wait(timeout=30), 2)
        self.assertTrue(shown.fullmatch(refused.stderr + node.text()), node.text())

    def test_a_sampled_round_with_another_result_ends_the_run_and_removes_its_checkpoints(self):
        scenario, settings = "scenarios/smoke/fedavg.toml", ["checkpoint.force=true", "worker.verify_share=1.0"]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        honest = self.summary(scenario, "--threads", "1", *words(settings), nodes=[1])
        self.assertEqual(honest["run_digest"], alone["run_digest"])
        reports = []

        def lying_later(message):
            reports.append(message)
            return [changed(message, lying) if len(reports) > 10 else message]
        _, run, _ = self.forged(lying_later, *settings)
        folder = self.out()
        done = mneme("run", *run, "--quiet", "--out", folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"node 127.0.0.1:\d+ finishes assignment .* with a result that differs")
        self.assertEqual([name for name in os.listdir(os.path.join(folder, "checkpoint")) if "checkpoint" in name], [])
        resumed = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone["run_digest"])


if __name__ == "__main__":
    run_tests()
