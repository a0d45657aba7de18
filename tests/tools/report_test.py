"""The commands report, new and completion of the program."""
import itertools
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree
import zlib
from html.parser import HTMLParser

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_data import write_data  # noqa: E402
from program import mneme, run_tests  # noqa: E402

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
CHARTS = {"accuracy-rounds", "accuracy-time", "accuracy-tasks-1", "accuracy-tasks-2", "matrix-1", "matrix-2",
          "classes-1", "classes-2", "forgetting", "training-loss", "uploads", "downloads", "utilization"}
EMPTY = {"meta", "link", "input", "br"}  # HTML's void elements


class Page(HTMLParser):
    """Parses a page: charts with their numbers of marks, external resources, and unclosed elements."""

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
        if tag in ("polyline", "polygon", "rect"):
            self.marks[self.chart] += 1
        self.loaded += [value for name, value in attributes if name in ("src", "href") and value != "data:,"]
        self.labels += tag == "label"
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Pixels:
    """A PNG with eight bits per channel, decoded by its specification."""

    def __init__(self, path):
        data = content_of(path)
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, packed = 8, b""
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            body = data[at + 8:at + 8 + size]
            assert zlib.crc32(kind + body) == struct.unpack(">I", data[at + 8 + size:at + 12 + size])[0]
            if kind == b"IHDR":
                self.width, self.height, depth, colors, *rest = struct.unpack(">IIBBBBB", body)
                assert (depth, rest) == (8, [0, 0, 0])
            packed += body if kind == b"IDAT" else b""
            at += 12 + size
        self.channels = {2: 3, 6: 4}[colors]
        self.rows = self.unfiltered(zlib.decompress(packed))

    def unfiltered(self, data):
        stride, back = self.width * self.channels, self.channels
        rows, above = [], bytes(stride)
        for y in range(self.height):
            kind, row = data[y * (stride + 1)], bytearray(data[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
            if kind == 1:
                for channel in range(back):
                    row[channel::back] = (value % 256 for value in itertools.accumulate(row[channel::back]))
            elif kind == 2:
                row = bytearray((value + up) % 256 for value, up in zip(row, above))
            for i in range(stride if kind > 2 else 0):
                left, up, corner = (row[i - back], above[i], above[i - back]) if i >= back else (0, above[i], 0)
                if kind == 3:
                    guess = (left + up) // 2
                else:
                    to_left, to_up, to_corner = abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)
                    guess = left if to_left <= to_up and to_left <= to_corner else up if to_up <= to_corner else corner
                row[i] = (row[i] + guess) % 256
            rows.append(row)
            above = row
        return rows

    def at(self, x, y):
        """Returns the color at a position in SVG units, in SVG notation."""
        row, column = self.rows[round(2 * y)], round(2 * x) * self.channels
        return "#" + bytes(row[column:column + 3]).hex()

    def colors(self, left, top, right, bottom):
        """Returns all colors in a box in SVG units."""
        return {self.at(x / 2, y / 2) for y in range(2 * top, 2 * bottom) for x in range(2 * left, 2 * right)}


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

    def test_every_run_has_a_reproducible_tensorboard_file(self):
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

    def test_each_chart_has_content_and_the_page_loads_no_files(self):
        text = self.page(self.path("runs"))
        page = Page(text)
        self.assertEqual(set(page.marks), CHARTS)
        for chart, marks in page.marks.items():
            self.assertGreater(marks, 0, chart)
        self.assertEqual(page.marks["matrix-1"], 3)  # the lower triangle of two tasks
        self.assertEqual(page.marks["accuracy-rounds"], 4)  # a curve and a band for each of two groups
        self.assertEqual(page.loaded, [])
        self.assertNotRegex(text, r"https?://|@import|url\((?!#)")
        self.assertEqual(page.open, [])
        self.assertEqual(len(page.ids), len(set(page.ids)))
        self.assertEqual(page.marks["accuracy-tasks-1"], 6)  # all seen and two tasks
        self.assertEqual(page.marks["forgetting"], 2)  # a bar of the first task for each group
        self.assertEqual(page.marks["classes-1"], 6)  # two classes after the first task, four after the second
        self.assertEqual(page.marks["training-loss"], 4)
        self.assertEqual(page.labels, 2)
        self.assertIn("<li>Clients enrolled: 4 clients at all times.</li>", text)
        self.assertIn("<table><caption>mean ± sample deviation over seeds [95 % interval]</caption>", text)
        digest = re.search(r"<details><summary>(\w{8})</summary><code>(\w{32})</code></details>", text)
        self.assertTrue(digest and digest.group(2).startswith(digest.group(1)))
        self.assertIn("A &lt;title&gt; &amp; more", text)  # of the resolved scenario
        self.assertEqual(text.count("resolved scenario of"), 2)
        self.assertIn("learning_rate = 0.01", text)

    def test_a_loss_with_several_terms_has_a_figure_and_old_runs_have_none(self):
        done = mneme("run", self.path("a.toml"), "--set", "strategy.name=fedprox", "--set", "strategy.mu=0.1",
                     "--quiet", "--out", self.path("terms"))
        self.assertEqual(done.returncode, 0, done.stderr)
        text = self.page(self.path("terms"))
        self.assertEqual(Page(text).marks["loss-terms-1"], 2)
        with open(self.path("terms/metrics.jsonl"), encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        with open(self.path("terms/metrics.jsonl"), "w", encoding="utf-8") as file:
            for line in lines:
                del line["training_loss"], line["training_loss_terms"]
                file.write(json.dumps(line) + "\n")
        os.remove(self.path("terms/accuracy_per_class.csv"))
        figures = set(Page(self.page(self.path("terms"))).marks)
        self.assertEqual(figures & {"training-loss", "loss-terms-1", "classes-1"}, set())
        self.assertIn("accuracy-tasks-1", figures)

    def test_equal_runs_give_equal_pages(self):
        self.assertEqual(self.page(self.path("runs")), self.page(self.path("runs")))

    def test_figures_are_written_to_separate_files(self):
        self.page(self.path("runs"), "--svg", self.path("figures"))
        self.assertEqual({name[:-4] for name in os.listdir(self.path("figures"))}, CHARTS)
        for name in os.listdir(self.path("figures")):
            root = xml.etree.ElementTree.parse(os.path.join(self.path("figures"), name)).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            self.assertTrue(root.find("{http://www.w3.org/2000/svg}title").text)

    def test_a_path_that_is_no_folder_is_refused_before_anything_is_written(self):
        file, page = self.path("a-file"), self.path("not-written.html")
        with open(file, "w", encoding="utf-8"):
            pass
        for option in ("--svg", "--png", "--tensorboard"):
            done = mneme("report", self.path("runs"), "-o", page, option, file)
            self.assertEqual((done.returncode, done.stderr), (2, f"error: {option} '{file}' is not a folder; expected "
                                                                  "a folder, which is created if it is missing\n"))
        self.assertFalse(os.path.exists(page))

    def test_figures_are_written_as_png(self):
        self.page(self.path("runs"), "--png", self.path("dots"), "--svg", self.path("drawn"))
        self.assertEqual({name[:-4] for name in os.listdir(self.path("dots"))}, CHARTS)
        curves = Pixels(self.path("dots/accuracy-rounds.png"))
        # Space for the title, two names, and the explanation of bands.
        self.assertEqual((curves.width, curves.height), (2 * 560, 2 * (30 + 340 + 3 * 18 + 8)))
        self.assertEqual(curves.at(2, 2), "#ffffff")
        self.assertEqual([curves.at(71, 380), curves.at(71, 398)], ["#3182ce", "#d9541e"])  # markers at their names
        self.assertTrue("#222222" in curves.colors(94, 372, 300, 388), "the first has no name: is there no font?")
        self.assertTrue("#222222" in curves.colors(56, 408, 300, 424), "nothing says what bands are")
        self.assertTrue("#d9541e" in curves.colors(56, 60, 542, 322), "the last curve is not drawn")
        matrix = Pixels(self.path("dots/matrix-1.png"))
        self.assertEqual((matrix.width, matrix.height), (2 * 560, 2 * 370))
        with open(self.path("drawn/matrix-1.svg"), encoding="utf-8") as file:
            cells = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="[\d.]+" height="[\d.]+" fill="(#\w+)"',
                               file.read())
        self.assertEqual(len(cells), 3)
        for x, y, color in cells:
            self.assertEqual(matrix.at(float(x) + 5, 30 + float(y) + 5), color)
        self.assertIn(matrix.at(508, 30 + 30.5), ("#08306b", "#09316b"))  # the scale's upper end
        self.assertEqual(matrix.at(450, 80), "#ffffff")  # a task is unknown before it starts

    def test_png_figures_need_rsvg_convert(self):
        bare = {name: value for name, value in os.environ.items() if name != "PATH"}
        done = mneme("report", self.path("runs"), "-o", self.path("bare.html"), "--png", self.path("bare"),
                     environment={**bare, "PATH": self.folder})
        self.assertEqual(done.returncode, 2)
        self.assertIn("--png: error: found no rsvg-convert in $PATH", done.stderr)
        self.assertFalse(os.path.exists(self.path("bare.html")))

    def test_unfinished_runs_give_a_warning_and_damaged_ones_an_error(self):
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

    def test_a_new_scenario_prefers_even_tasks_and_accepts_others(self):
        for classes, settings, kind, count in (
                (47, ["tasks.classes=40"], "class-incremental", 5),
                (47, ["tasks.kind=class-incremental"], "class-incremental", 5),  # uneven, since 47 is prime
                (14, [], "class-incremental", 7)):
            with self.subTest(classes=classes, settings=settings):
                options = [option for text in (f"data.classes={classes}", *settings) for option in ("--set", text)]
                made = self.path(f"{'-'.join([str(classes), *settings])}.toml")
                done = mneme("new", "fedavg", "synthetic", *options, "-o", made)
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(made, "rb") as file:
                    scenario = tomllib.load(file)
                self.assertEqual(scenario["tasks"].get("kind", "class-incremental"), kind)
                self.assertEqual(scenario["tasks"]["count"], count)
                self.assertNotIn("shape", scenario["data"])

    def test_a_new_scenario_is_valid(self):
        made_up = {**os.environ, "MNEME_DATA": self.path("data")}
        write_data(self.path("data"), "mnist", "pacs")
        pairs = [("fedprox", "synthetic"), ("fedavg", "mnist"), ("finetune", "pacs"), ("fedhaf", "pacs"),
                 ("lander", "synthetic")]  # a frozen net needs weights; a net needs images
        for method, data in pairs:
            with self.subTest(method=method, data=data):
                made = self.path(f"{method}.toml")
                done = mneme("new", method, data, "-o", made, environment=made_up)
                self.assertEqual(done.returncode, 0, done.stderr)
                checked = mneme("validate", made, environment=made_up)
                self.assertEqual((checked.returncode, checked.stderr), (0, ""))
                with open(made, encoding="utf-8") as file:
                    text = file.read()
                self.assertIn(f'name = "{method}"', text)
                lines = text.splitlines()
                self.assertEqual(lines[0], "#:schema ./scenario.schema.json")
                self.assertLessEqual(max(len(line) for line in lines if line.startswith("#")
                                         and not re.match(r"# \w+ = ", line)), 100)
                # Values after # are the defaults: setting all of them gives the same scenario.
                full = self.path("full.toml")
                with open(full, "w", encoding="utf-8") as file:
                    file.write(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))
                same = mneme("sweep", made, full, "--out", self.path("none"), environment=made_up)
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
