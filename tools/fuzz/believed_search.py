"""Nodes forge numbers of the right form, which a run believes with worker.verify_share = 0: its results are theirs
then, but it ends by no signal, at some time, and with a reason where it fails; what it leaves resumes likewise."""
import glob
import os
import random
import shutil

from answer_search import AnswerSearch, WrongAnswer
from changed_answers import changed, forged_floats, forged_integers
from disturbed_runs import ROOT
from wave_reports import REPORT
from ways_to_run import INTERRUPTED

SETTINGS = ["checkpoint.force=true", "worker.node_silence=\"5 s\"", "worker.node_answer=\"1 s\""]
SMOKE = sorted(os.path.basename(path)[:-len(".toml")]
               for path in glob.glob(os.path.join(ROOT, "scenarios", "smoke", "*.toml")))


class ForgedNumbers(WrongAnswer):
    """Forges numbers of each of its reports from number `at` on."""

    def __init__(self, at, draw, change):
        super().__init__("forged", at, draw)
        self.change = change

    def __call__(self, message):
        if not message or message[0] != REPORT:
            return [message]
        number, self.reports = self.reports, self.reports + 1
        other = changed(message, self.change, self.draw) if number >= self.at else message
        self.is_done = self.is_done or other != message
        return [other]


class BelievedSearch(AnswerSearch):
    scenarios = {}  # nothing is run undisturbed: there is nothing to compare with

    def try_seed(self, seed):
        draw = random.Random(seed)
        name = SMOKE[seed % len(SMOKE)]
        change = draw.choice([forged_integers, forged_integers, forged_floats])
        answers = [ForgedNumbers(draw.choice([0, 0, 1, 2, 5]), random.Random(draw.random()), change)
                   for _ in self.nodes]
        self.counts["runs"] += 1
        out = self._fresh_folder()
        ended = self._run(name, out, answers, 0.0)
        self.counts["wrong answers"] += sum(answer.is_done for answer in answers)
        fault = self._fault_of(ended) or self._node_fault()
        if not fault and ended.code == 1 and os.path.exists(os.path.join(out, "scenario.toml")):
            self.counts["resumed"] += 1
            again = self._fault_of(self.programs.run(["resume", out, "--quiet", "--threads", "1"]))
            fault = again and "resumed: " + again
        if ended.code == 0:
            self.counts["went on"] += 1
        self._count_refused(out)
        shutil.rmtree(os.path.dirname(out), ignore_errors=True)
        if not fault:
            return None
        self.counts["found"] += 1
        return f"seed {seed}, {name}, {change.__name__} from {[answer.at for answer in answers]}: {fault}"

    @staticmethod
    def _fault_of(ended):
        if ended.code in (None, INTERRUPTED):
            return "the run does not end"
        if ended.code not in (0, 1, 2):
            return f"the run ended with code {ended.code}: {ended.errors[-600:]}"
        return None if ended.code == 0 or "error: " in ended.errors else f"code {ended.code} without a reason"

    def _words(self, name, out):
        words = ["run", os.path.join(ROOT, "scenarios", "smoke", name + ".toml"), "--quiet", "--out", out,
                 "--threads", "1"]
        return words + [word for setting in SETTINGS for word in ("--set", setting)]
