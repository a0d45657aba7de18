"""mneme report, new and completion from outside."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from html.parser import HTMLParser

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import data_found, mneme, run_tests  # noqa: E402

SCENARIO = """title = "A <title> & more"
[data]
name = "synthetic"
shape = [8]
classes = 4
rows = 200
[tasks]
count = 2
[clients]
count = 4
[rounds]
per_task = 3
[model]
name = "linear"
[strategy]
name = "fedavg"
"""
CHARTS = {"accuracy-rounds", "accuracy-time", "matrix-1", "matrix-2", "forgetting", "enrolment", "traffic",
          "utilisation"}
EMPTY = {"meta", "link", "input", "br"}  # HTML's elements without an end


class Page(HTMLParser):
    """Which charts there are, how many marks each has, what is loaded from elsewhere, and what lies unclosed."""

    def __init__(self, text):
        super().__init__()
        self.marks, self.loaded, self.open, self.chart, self.ids, self.labels = {}, [], [], None, [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "figure":
            self.chart = given["id"]
            self.marks[self.chart] = 0
        if tag in ("polyline", "polygon") or tag == "rect":
            self.marks[self.chart] += 1
        self.loaded += [value for name, value in attributes if name in ("src", "href") and value != "data:,"]
        self.labels += tag == "label"
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


class ReportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mneme-report-")
        with open(os.path.join(cls.folder, "a.toml"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        done = mneme("sweep", os.path.join(cls.folder, "a.toml"), "--over", "training.learning_rate=0.1,0.01",
                     "--seeds", "1-3", "--quiet", "--out", os.path.join(cls.folder, "runs"))
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def page(self, *arguments):
        done = mneme("report", *arguments, "-o", self.path("report.html"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("report.html"), encoding="utf-8") as file:
            return file.read()

    def test_event_files_for_tensorboard_are_of_every_run_and_follow_from_it(self):
        self.page(self.path("runs"), "--tensorboard", self.path("logs"))
        runs = sorted(name for name in os.listdir(self.path("runs")) if "fedavg" in name)
        self.assertEqual(sorted(os.listdir(self.path("logs"))), runs)
        done = mneme("run", self.path("runs") + f"/{runs[0]}/scenario.toml", "--tensorboard", "--quiet", "--out",
                     self.path("again"))
        self.assertEqual(done.returncode, 0, done.stderr)
        files = [os.path.join(self.path(folder), "events.out.tfevents.0.mneme")
                 for folder in (f"logs/{runs[0]}", "again")]
        first, second = map(content_of, files)
        self.assertIn(b"task_accuracy/2", first)
        self.assertEqual(first, second)

    def test_each_chart_has_marks_and_nothing_is_loaded(self):
        text = self.page(self.path("runs"))
        page = Page(text)
        self.assertEqual(set(page.marks), CHARTS)
        for chart, marks in page.marks.items():
            self.assertGreater(marks, 0, chart)
        self.assertEqual(page.marks["matrix-1"], 3)  # the lower triangle of two tasks
        self.assertEqual(page.marks["accuracy-rounds"], 4)  # a curve and a band for each of two groups
        self.assertEqual(page.loaded, [])
        self.assertNotRegex(text, r"https?://|@import|url\(")
        self.assertEqual(page.open, [])
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(page.labels, 2)
        self.assertIn("A &lt;title&gt; &amp; more", text)  # of the resolved scenario
        self.assertEqual(text.count("<details>"), 2)
        self.assertIn("learning_rate = 0.01", text)

    def test_equal_runs_give_equal_pages(self):
        self.assertEqual(self.page(self.path("runs")), self.page(self.path("runs")))

    def test_figures_are_files_of_their_own(self):
        self.page(self.path("runs"), "--svg", self.path("figures"))
        self.assertEqual({name[:-4] for name in os.listdir(self.path("figures"))}, CHARTS)
        for name in os.listdir(self.path("figures")):
            root = xml.etree.ElementTree.parse(os.path.join(self.path("figures"), name)).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertTrue(root.find("{http://www.w3.org/2000/svg}title").text)

    def test_what_is_not_done_is_a_warning_and_what_is_damaged_an_error(self):
        shutil.copytree(self.path("runs"), self.path("worse"))
        first, second = sorted(name for name in os.listdir(self.path("worse")) if name.startswith("a-"))[:2]
        os.remove(os.path.join(self.path("worse"), first, "summary.json"))
        self.assertIn(f"{first}: the run is unfinished", self.page(self.path("worse")))
        with open(os.path.join(self.path("worse"), second, "metrics.jsonl"), "a", encoding="utf-8") as file:
            file.write("{\"task\":")
        done = mneme("report", self.path("worse"), "-o", self.path("none.html"))
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{second}/metrics.jsonl:7: error: is damaged", done.stderr)
        self.assertFalse(os.path.exists(self.path("none.html")))
        self.assertEqual(mneme("report").returncode, 2)

    def test_a_new_scenario_is_valid(self):
        pairs = [("fedprox", "synthetic"), ("fedavg", "fashion-mnist"), ("finetune", "pacs")]
        for method, data in pairs:
            if not data_found(data):
                continue
            with self.subTest(method=method, data=data):
                made = self.path(f"{method}.toml")
                done = mneme("new", method, data, "-o", made)
                self.assertEqual(done.returncode, 0, done.stderr)
                checked = mneme("validate", made)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))
                with open(made, encoding="utf-8") as file:
                    text = file.read()
                self.assertIn(f'name = "{method}"', text)
                # The keys behind # say what holds without them: with all of them given, it is the same scenario.
                full = self.path("full.toml")
                with open(full, "w", encoding="utf-8") as file:
                    file.write(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
                same = mneme("sweep", made, full, "--out", self.path("none"))
                self.assertIn("are the same run", same.stderr)
        self.assertEqual(mneme("new", "fedprocks", "mnist").returncode, 2)
        self.assertIn("did you mean 'fedprox'?", mneme("new", "fedprocks", "mnist").stderr)
        self.assertEqual(mneme("new", "fedavg").returncode, 2)
        self.assertEqual(mneme("new", "fedavg", "synthetic", "-o", self.path("a.toml")).returncode, 2)

    def completed(self, *words):
        script = mneme("completion", "bash").stdout
        asked = (f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _mneme 2>/dev/null; "
                 "echo ${COMPREPLY[@]}")
        return subprocess.run(["bash", "--norc", "-c", script.replace("complete -o", ": -o") + asked],
                              capture_output=True, text=True, check=True, cwd=self.folder).stdout.split()

    def test_shells_complete_commands_options_keys_and_names(self):
        self.assertEqual(self.completed("mneme", "sw"), ["sweep"])
        self.assertEqual(self.completed("mneme", "sweep", "--ov"), ["--over"])
        self.assertEqual(self.completed("mneme", "run", "a.toml", "--set", "rounds.coh"), ["rounds.cohort="])
        self.assertEqual(self.completed("mneme", "compare", "runs", "--by", "strategy.m")[0][:10], "strategy.m")
        self.assertEqual(self.completed("mneme", "new", "fedpro"), ["fedprox"])
        self.assertEqual(self.completed("mneme", "run", "a.to"), ["a.toml"])
        for shell in ("zsh", "fish"):
            done = mneme("completion", shell)
            self.assertEqual(done.returncode, 0)
            self.assertIn("rounds.cohort", done.stdout)
        self.assertEqual(mneme("completion", "csh").returncode, 2)


if __name__ == "__main__":
    run_tests()
