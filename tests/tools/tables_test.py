"""User tables through the program: quotes, unnamed columns, keys for doctor and new, partitions of all rows."""
import csv
import json
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from own_data import Numbers  # noqa: E402, which finds the next one
from array_bytes import write_npy, write_npz, write_safetensors  # noqa: E402
from program import mneme, run_tests  # noqa: E402

SCENARIO = """seed = 1
[data]
name = "csv"
file = "t.csv"
{data}
[tasks]
kind = "single"
count = 1
[clients]
count = 3
[rounds]
per_task = 1
{rest}
[model]
name = "linear"
[strategy]
name = "fedavg"
"""


def table(header, label=lambda row: "cat" if row % 2 else "dog", lead=lambda row: "", rows=12):
    """Returns lines with `lead`, two numbers and a label."""
    return header + "\n" + "".join(f"{lead(row)}{row / 8},{row % 5 - 2},{label(row)}\n" for row in range(rows))


class Tables(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-tables-")
        self.addCleanup(shutil.rmtree, self.folder)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return self.path(name)

    def accepted(self, *words):
        done = mneme(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def refused(self, *words):
        done = mneme(*words)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stderr

    def digest(self, *words):
        return json.loads(self.accepted("doctor", "--json", *words).stdout)["content"]

    def test_class_names_are_kept_unchanged(self):
        names = ['5" disc', "a, b", " blank"]
        quoted = ['"5"" disc"', '"a, b"', '" blank"']
        self.write("t.csv", table("a,b,label", label=lambda row: quoted[row % 3], rows=24))
        told = json.loads(self.accepted("doctor", "--json", self.path("t.csv")).stdout)
        self.assertEqual([entry["name"] for entry in told["classes"]], sorted(names))
        self.assertIn('5" disc ', self.accepted("doctor", self.path("t.csv")).stdout)
        scenario = self.write("s.toml", SCENARIO.format(data="test_share = 0.25", rest=""))
        self.accepted("run", scenario, "--quiet", "--out", self.path("r"))
        with open(self.path("r", "accuracy_per_class.csv"), encoding="utf-8", newline="") as file:
            self.assertEqual({line["name"] for line in csv.DictReader(file)}, set(names))
        self.accepted("report", self.path("r"), "-o", self.path("report.html"))
        with open(self.path("report.html"), encoding="utf-8") as file:
            page = file.read()
        self.assertRegex(page, r"5(\"|&quot;|&#34;|\\\") disc")
        self.assertNotRegex(page, r"5(\"|&quot;|&#34;|\\\"){2} disc")

    def test_an_index_column_is_refused_unless_ignore_columns_excludes_it(self):
        self.write("t.csv", table("a,b,label"))
        indexed = self.write("index.csv", table(",a,b,label", lead=lambda row: f"{row},"))
        named = self.write("named.csv", table("Unnamed: 0,a,b,label", lead=lambda row: f"{row},"))
        self.assertIn('index.csv:1: error: column 1 of the header has no name', self.refused("doctor", indexed))
        self.assertIn("had no name when it was read before", self.refused("doctor", named))
        plain = self.digest(self.path("t.csv"))
        self.assertEqual(self.digest(indexed, "--set", 'data.ignore_columns=[""]'), plain)
        self.assertEqual(self.digest(named, "--set", 'data.ignore_columns=["Unnamed: 0"]'), plain)
        self.assertIn('write ["a"]', self.refused("doctor", indexed, "--set", "data.ignore_columns=a"))
        scenario = self.write("s.toml", SCENARIO.format(data='test_share = 0.25\nignore_columns = [""]', rest=""))
        runs = []
        for name in ("index.csv", "t.csv"):
            words = [] if name == "index.csv" else ["--set", "data.ignore_columns=[]"]
            out = self.path("r-" + name)
            self.accepted("run", scenario, "--quiet", "--out", out, "--set", f"data.file={self.path(name)}", *words)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                runs.append(json.load(file)["run_digest"])
        self.assertEqual(runs[0], runs[1])

    def test_doctor_and_new_accept_set(self):
        iris = self.write("iris.csv", table("a,b,species"))
        message = self.refused("doctor", iris)
        self.assertIn('set data.label_column to the column of the classes, as in data.label_column = "species"',
                      message)
        self.assertEqual(self.refused("new", "fedavg", iris), message)
        self.write("t.csv", table("a,b,label"))
        self.assertEqual(self.digest(iris, "--set", "data.label_column=species"), self.digest(self.path("t.csv")))
        text = self.accepted("new", "fedavg", iris, "--set", "data.label_column=species", "--set",
                             "rounds.per_task=3", "--set", "seed=7").stdout
        for line in ('label_column = "species"', "per_task = 3", "seed = 7", "test_share = 0.2"):
            self.assertRegex(text, rf"(?m)^{re.escape(line)}$")
        self.accepted("validate", self.write("new.toml", text))
        text = self.accepted("new", "fedavg", iris, "--set", "data.label_column=species", "--set",
                             "tasks.kind=single").stdout
        self.assertRegex(text, '(?m)^kind = "single"$')
        self.assertIn("did you mean", self.refused("doctor", iris, "--set", "data.label_colum=species"))
        self.assertIn("did you mean", self.refused("new", "fedavg", iris, "--set", "data.label_colum=species"))
        self.assertIn("rounds.cohort does not affect data", self.refused("doctor", iris, "--set", "rounds.cohort=3"))
        self.assertIn("expected KEY=VALUE", self.refused("new", "fedavg", iris, "--set", "data.label_column"))
        scenario = self.write("s.toml", SCENARIO.format(data="test_share = 0.25", rest=""))
        self.assertEqual(self.digest(scenario, "--set", f"data.file={iris}", "--set", "data.label_column=species"),
                         self.digest(scenario))

    def test_file_extensions_may_have_capital_letters(self):
        numbers = Numbers()
        numbers.write_csv(self.path("t.csv"))
        write_npz(self.path("a.npz"), numbers.arrays())
        write_safetensors(self.path("c.safetensors"), numbers.arrays())
        write_npy(self.path("d"), numbers.arrays())
        expected = self.digest(self.path("a.npz"))
        os.rename(self.path("t.csv"), self.path("T.CSV"))
        os.rename(self.path("a.npz"), self.path("A.NPZ"))
        os.rename(self.path("c.safetensors"), self.path("C.SafeTensors"))
        for name in os.listdir(self.path("d")):
            os.rename(self.path("d", name), self.path("d", name.replace(".npy", ".NPY")))
        digests = set()
        for number, words in enumerate((["T.CSV"], ["A.NPZ"], ["C.SafeTensors"], ["d", "train_x.NPY"], ["d"])):
            with self.subTest(path=words):
                path = self.path(*words)
                self.assertEqual(self.digest(path), expected)
                scenario = self.path(f"{number}.toml")
                self.accepted("new", "fedavg", path, "-o", scenario, "--set", "rounds.per_task=1", "--set",
                              "clients.count=3", "--set", "tasks.count=2")
                out = self.path(f"r{number}")
                self.accepted("run", scenario, "--quiet", "--out", out)
                with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                    digests.add(json.load(file)["run_digest"])
        self.assertEqual(len(digests), 1)

    def test_a_partition_of_all_rows_excludes_the_test_rows(self):
        self.write("t.csv", table("a,b,label"))
        self.write("sites.csv", "client,row\n" + "".join(f"{row % 3},{row}\n" for row in range(12)))
        scenario = self.write("s.toml", SCENARIO.format(
            data="test_share = 0.25", rest='[partition]\nkind = "file"\nfile = "sites.csv"'))
        said = self.accepted("run", scenario, "--quiet", "--trace", "--out", self.path("r"))
        with open(self.path("r", "partition.csv"), encoding="utf-8") as file:
            held = {int(line["row"]): int(line["client"]) for line in csv.DictReader(file)}
        self.assertEqual(len(held), 8)  # 2 of the 6 rows of each class: round(0.25 * 6)
        self.assertTrue(all(client == row % 3 for row, client in held.items()), held)
        warning = "4 rows of partition.file are test rows (selected by data.test_share = 0.25)"
        self.assertIn(warning, self.accepted("validate", scenario).stderr)
        self.assertIn(warning, self.accepted("validate", scenario, "--set", "data.test_rows=2").stderr)
        self.assertNotIn("error", said.stderr)
        for text, words in (("client,row\n", "assigns no row to a client"),
                            ("client,row,Task\n0,1,1\n", "did you mean 'task'?"),
                            ("client,row\n0,12\n", "row 12 does not exist")):
            self.write("sites.csv", text)
            self.assertIn(words, self.refused("validate", scenario))

    def test_a_misspelt_column_of_devices_is_refused(self):
        self.write("t.csv", table("a,b,label"))
        scenario = self.write("s.toml", SCENARIO.format(
            data="test_share = 0.25", rest='[devices]\ncapacity_file = "fleet.csv"'))
        for header, words in (("client,row_per_second", "did you mean 'rows_per_second'?"),
                              ("client", "names no column but client"),
                              ("client,rows_per_second,note", "an unknown column 'note'; expected client,")):
            self.write("fleet.csv", header + "\n0,1,1\n")
            self.assertIn(words, self.refused("validate", scenario))


if __name__ == "__main__":
    run_tests()
