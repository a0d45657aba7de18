"""Nodes answer something else than they have found: emptied, changed, swapped, replayed or withheld reports. The run
goes on without them to the digest of the undisturbed run, or ends with a reason and resumes to it; a node stays."""
import json
import os
import random
import shutil

from changed_answers import FORM_CHANGES, NUMBER_CHANGES, changed, damaged
from disturbed_runs import ROOT, DisturbedRuns
from node_streams import ChangedMessages, Link
from started_nodes import StartedNode
from wave_reports import REPORT, decoded, encoded

NODES = 2  # each of which gives a wrong answer
SCENARIOS = {"fedavg": [], "fedasync": [], "stsa": [], "er": [], "fil-ver": []}
SETTINGS = ["checkpoint.force=true", "worker.node_silence=\"5 s\"", "worker.node_answer=\"1 s\"", "rounds.per_task=2"]


class WrongAnswer:
    """One wrong answer of a node: what it says instead of its report number `at`."""

    def __init__(self, kind, at, draw):
        self.kind, self.at, self.draw = kind, at, draw
        self.reports, self.held, self.is_done = 0, [], False

    def __call__(self, message):
        if not message or message[0] != REPORT:
            return [message]
        number, self.reports = self.reports, self.reports + 1
        if self.at < 0 and encoded(decoded(message)) != message:
            raise SystemExit("a report is not what it is taken for")
        if number != self.at:
            if self.kind == "replayed" and number < self.at:
                self.held.append(message)
            held, self.held = (self.held, []) if self.kind == "swapped" else ([], self.held)
            return [message, *held]
        other = self._instead(message)
        self.is_done = other != [message]
        return other

    def _instead(self, message):
        if self.kind == "replayed":
            return [message, self.draw.choice([*self.held, message])]
        if self.kind in ("withheld", "swapped"):
            self.held = [message]
            return []
        if self.kind == "nothing":
            return [b""]
        if self.kind == "another kind":
            return [bytes([self.draw.randrange(14)]) + message[1:]]
        if self.kind == "damaged":
            return [damaged(message, self.draw)]
        changes = NUMBER_CHANGES if self.kind == "numbers" else FORM_CHANGES
        return [changed(message, self.draw.choice(changes), self.draw)]


KINDS = ["form"] * 10 + ["numbers"] * 2 + ["damaged"] * 2 + ["replayed"] * 2 + ["swapped", "withheld", "nothing",
                                                                             "another kind"]
# Numbers that are no others' in form are told apart by a second computation only.
VERIFIED = {"numbers", "damaged"}


class AnswerSearch(DisturbedRuns):
    scenarios = SCENARIOS

    def __init__(self, program, folder):
        super().__init__(program, folder)
        self.counts = {"runs": 0, "wrong answers": 0, "nodes refused": 0, "went on": 0, "resumed": 0, "refused": 0,
                       "found": 0}
        self.nodes = [StartedNode(program, folder, number) for number in range(NODES)]
        self.reports = {}  # of each node in an undisturbed run, by scenario
        for name in self.scenarios:
            self._undisturbed(name)
            plain = [WrongAnswer("none", -1, None) for _ in self.nodes]
            ended = self._run(name, os.path.join(folder, name + "-nodes"), plain, 0.0)
            if ended.code != 0 or self._wrong(name, os.path.join(folder, name + "-nodes")):
                raise SystemExit(f"{name} fails undisturbed with nodes: {ended.errors}")
            self.reports[name] = max(answer.reports for answer in plain)

    def close(self):
        super().close()
        for node in self.nodes:
            node.end()

    def try_seed(self, seed):
        draw = random.Random(seed)
        name = draw.choice(list(SCENARIOS))
        answers = []
        for _ in self.nodes:
            kind = draw.choice(KINDS)
            answers.append(WrongAnswer(kind, draw.randrange(self.reports[name]), random.Random(draw.random())))
        share = 1.0 if VERIFIED & {answer.kind for answer in answers} else draw.choice([0.0, 0.0, 0.3])
        self.counts["runs"] += 1
        out = self._fresh_folder()
        ended = self._run(name, out, answers, share)
        self.counts["wrong answers"] += sum(answer.is_done for answer in answers)
        fault = self._end_of(name, out, (ended.code, ended.errors)) or self._node_fault()
        self._count_refused(out)
        shutil.rmtree(os.path.dirname(out), ignore_errors=True)
        if not fault:
            return None
        self.counts["found"] += 1
        said = ", ".join(f"{answer.kind} at {answer.at}" for answer in answers)
        return f"seed {seed}, {name}, {said}, verify_share {share}: {fault}"

    def _words(self, name, out):
        words = ["run", os.path.join(ROOT, "scenarios", "smoke", name + ".toml"), "--quiet", "--trace", "--out", out,
                 "--threads", "1"]
        return words + [word for setting in SETTINGS + SCENARIOS[name] for word in ("--set", setting)]

    def _run(self, name, out, answers, share):
        shutil.rmtree(out, ignore_errors=True)
        links = [Link(node.port, answering=ChangedMessages(answer)) for node, answer in zip(self.nodes, answers)]
        words = ["--nodes", ",".join(link.address for link in links), "--set", f"worker.verify_share={share}"]
        ended = self.programs.run(self._words(name, out) + words)
        for link in links:
            link.close()
        for node in self.nodes:
            node.await_next_run()
        return ended

    def _count_refused(self, out):
        try:
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                self.counts["nodes refused"] += sum("wrong" in node for node in json.load(file)["nodes"])
        except (OSError, ValueError, KeyError):
            pass

    def _node_fault(self):
        for number, node in enumerate(self.nodes):
            if fault := node.fault:
                self.nodes[number].end()
                self.nodes[number] = StartedNode(self.program, self.folder, number)
                return fault
        return None
