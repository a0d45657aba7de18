"""Nodes that answer something else than they have found: the run goes on without them, or ends and names them."""
import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, words  # noqa: E402
from program import ROOT, mneme, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "fuzz"))
from changed_answers import changed, failing, other_type  # noqa: E402
from node_streams import ChangedMessages, Link  # noqa: E402
from wave_reports import decoded, encoded  # noqa: E402

STSA = "scenarios/smoke/stsa.toml"


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

    def test_wrong_answers_lose_their_node_and_nothing_else(self):
        alone = self.summary("scenarios/smoke/fedavg.toml", "--threads", "1")

        def forging(form):
            return lambda message: [changed(message, form, random.Random(1))]
        for form, reason in ((other_type, "with tensors of other names, types or sizes than it has"),
                             (failing, "which does not fail here|no reason for a failure|by nobody|another client")):
            link, run = self.forged(forging(form))
            self.refused_with(link, run, alone, reason)
        link, run = self.forged(lambda message: [] if decoded(message) else [message], "worker.node_answer=\"1 s\"")
        self.refused_with(link, run, alone, r"has owed \d+ rounds for \d+ s, of which one takes")

    def test_what_a_node_says_of_itself_is_printable_and_files_are_sent_once(self):
        link, run = self.forged(lambda message: [message[:10] + b"\x1b" + message[11:] if message[0] == 0 else message])
        self.assertEqual(self.summary(*run)["nodes"][0]["name"][0], "?")
        link, run = self.forged(lambda message: [message] * 2 if message[0] == 3 else [message], scenario=STSA)
        refused = mneme("run", *run, *self.projection(), "--out", self.out())
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("asks for a file that was not offered, or twice for one", refused.stderr)

    def test_a_node_that_lies_is_named_and_what_it_has_said_does_not_stay(self):
        """It begins with the second task, of whose first rounds this process computes one, too."""
        scenario, settings = "scenarios/smoke/fedavg.toml", ["checkpoint.force=true"]
        alone = self.summary(scenario, "--threads", "1", *words(settings))
        reports = []

        def noted(message):
            reports.append(decoded(message))
            return [message]
        _, run = self.forged(noted, *settings)
        self.summary(*run)
        half = len(reports) // 2

        def half_lying():
            seen = []

            def change(message):
                seen.append(message)
                return [encoded(lying(decoded(message))) if decoded(message) and len(seen) > half else message]
            return change
        link, run = self.forged(half_lying(), *settings)
        folder = self.out()
        done = mneme("run", *run, "--quiet", "--out", folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, f"node {link.address} finishes assignment .* with other numbers than this")
        self.assertEqual([name for name in os.listdir(os.path.join(folder, "checkpoint")) if "checkpoint" in name], [])
        resumed = mneme("resume", folder, "--quiet", "--threads", "1")
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertEqual(self.read(folder)["run_digest"], alone["run_digest"])
        link, run = self.forged(half_lying(), *settings, "worker.verify_share=1.0")
        self.refused_with(link, run, alone, "with other numbers than this process finds")


if __name__ == "__main__":
    run_tests()
