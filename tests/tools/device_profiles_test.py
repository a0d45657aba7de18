"""Devices from outside: profiles by name and by file, calibration, traces of FedScale's format, links that end."""
import os
import pickle
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests  # noqa: E402

TINY = """
tasks.kind = "single"
partition = { kind = "iid" }
clients.count = 6
rounds = { per_task = 2, cohort = 3 }
model.name = "linear"
training.batch = 8
strategy.name = "fedavg"
evaluation.every = 0
checkpoint.every = 0
[data]
name = "synthetic"
shape = [4]
classes = 2
rows = 240
"""
LISTED = {"lte": "(links)", "raspberry-pi-5": "Raspberry Pi 5"}


def seconds_of(output):
    return float(re.search(r'"virtual_seconds":\s*([0-9.e+-]+)', output).group(1))


class Devices(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def run_with(self, name, devices):
        scenario = self.write(f"{name}.toml", TINY + "[devices]\n" + devices)
        done = mneme("run", scenario, "--quiet", "--out", self.path(name))
        summary = self.path(os.path.join(name, "summary.json"))
        if done.returncode == 0:
            with open(summary, encoding="utf-8") as file:
                return done, file.read()
        return done, ""

    def test_named_profiles_have_sources_and_are_listed(self):
        listed = mneme("list", "devices").stdout
        folder = os.path.join(ROOT, "scenarios", "devices")
        for file in sorted(os.listdir(folder)):
            name = os.path.splitext(file)[0]
            with self.subTest(name=name), open(os.path.join(folder, file), encoding="utf-8") as text:
                self.assertRegex(text.read(), r'sources = \[\n  "')
                self.assertRegex(listed, rf"(?m)^ *{re.escape(name)} ")
        for name, words in LISTED.items():
            self.assertRegex(listed, rf"{name} .*{re.escape(words)}")

    def test_a_faster_device_takes_less_virtual_time_over_the_same_link(self):
        times = {}
        for name in ("raspberry-pi-zero-2w", "snapdragon-8-gen-2"):
            done, summary = self.run_with(name, f'profiles = [{{ name = "{name}", link = "dsl" }}]\n')
            self.assertEqual(done.returncode, 0, done.stderr)
            times[name] = seconds_of(summary)
        self.assertGreater(times["raspberry-pi-zero-2w"], times["snapdragon-8-gen-2"])
        self.assertGreater(times["snapdragon-8-gen-2"], 4 * 0.025)  # two rounds, down and up over the link

    def test_a_calibrated_profile_is_read_back_and_another_net_or_batch_is_named(self):
        scenario = self.write("tiny.toml", TINY)
        done = mneme("calibrate", scenario, "--seconds", "0.2", "-o", self.path("here.toml"))
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(self.path("here.toml"), encoding="utf-8") as file:
            text = file.read()
        for words in ("[[nets]]", 'net = "linear"', "parameters = 10", "batch = 8", "forward_rows_per_second"):
            self.assertIn(words, text)
        done, _ = self.run_with("calibrated", 'profiles = [{ file = "here.toml" }]\n')
        self.assertEqual(done.returncode, 0, done.stderr)
        entry_only = re.sub(r"(?m)^flops_per_second = .*$", "", re.sub(r"(?m)^batch = .*$", "batch = 9", text))
        self.write("other.toml", entry_only)
        done, _ = self.run_with("refused", 'profiles = [{ file = "other.toml" }]\n')
        self.assertEqual(done.returncode, 2)
        self.assertIn('net = "linear", parameters = 10 at batch 9, not at training.batch = 8', done.stderr)

    def test_what_is_wrong_with_profiles_is_said_where_it_is(self):
        self.write("odd.toml", 'flops_per_secnd = 1.0\n[link]\nuplink_mbit = -3\n')
        for devices, words in (('profiles = [{ name = "raspbery-pi-5" }]', 'did you mean "raspberry-pi-5"?'),
                               ('profiles = [{ share = 1 }]', "expected one of name, file and text"),
                               ('profiles = [{ name = "lte" }]', "says nothing of how fast it computes"),
                               ('profiles = [{ name = "rtx-3060-ti", link = "raspberry-pi-5" }]', "has no [link]"),
                               ('profiles = [{ file = "odd.toml" }]', "did you mean 'flops_per_second'?"),
                               ('profiles = [{ file = "odd.toml" }]', "odd.toml:3:15: error: link.uplink_mbit = -3"),
                               ("server_uplink_mbit = -1", "devices.server_uplink_mbit = -1")):
            with self.subTest(devices=devices):
                done, _ = self.run_with("wrong", devices + "\n")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)

    def test_a_round_that_waits_for_a_link_whose_trace_has_ended_fails_in_words(self):
        self.write("links.csv", "client,from,to,uplink_mbit,downlink_mbit\n" +
                   "".join(f"{client},0,0.01,1,1\n" for client in range(6)))
        done, _ = self.run_with("ended", 'link_file = "links.csv"\nlatency = "0 s"\n')
        self.assertEqual(done.returncode, 1)
        self.assertIn("a trace of devices.link_file may have ended", done.stderr)
        done, _ = self.run_with("again", 'link_file = "links.csv"\ntrace_end = "repeat"\n')
        self.assertEqual(done.returncode, 0, done.stderr)


class FedScale(unittest.TestCase):
    def convert(self, folder, entries, kind="availability", clients=5):
        path = os.path.join(folder, "trace.pickle")
        with open(path, "wb") as file:
            pickle.dump(entries, file)
        return subprocess.run([sys.executable, os.path.join(ROOT, "tools", "fedscale_traces.py"), f"--{kind}", path,
                               "--clients", str(clients), "-o", folder], capture_output=True, text=True)

    def test_availability_and_capacity_become_csv_files_that_a_run_reads(self):
        with tempfile.TemporaryDirectory() as folder:
            days = {name: {"duration": 400, "inactive": [50 + name, 300], "finish_time": 400, "active": [10, 200],
                           "model": "SM-G950F"} for name in range(3)}
            self.assertEqual(self.convert(folder, days).returncode, 0)
            speeds = {1: {"computation": 10.0, "communication": 1000.0},
                      2: {"computation": 20.0, "communication": 500.0}}
            self.assertEqual(self.convert(folder, speeds, "capacity").returncode, 0)
            with open(os.path.join(folder, "availability.csv"), encoding="ascii") as file:
                self.assertEqual(file.read().splitlines()[:4],
                                 ["client,from,to,period", "0,10,50,400", "0,200,300,400", "1,10,51,400"])
            with open(os.path.join(folder, "capacity.csv"), encoding="ascii") as file:
                self.assertEqual(file.read().splitlines()[1:3],
                                 ["0,33.3333333,1.024,1.024", "1,16.6666667,0.512,0.512"])
            scenario = os.path.join(folder, "a.toml")
            with open(scenario, "w", encoding="utf-8") as file:
                file.write(TINY.replace("count = 6", "count = 5") + '[devices]\navailability = "file"\n'
                           'availability_file = "availability.csv"\ntrace_end = "repeat"\n'
                           'capacity_file = "capacity.csv"\n')
            done = mneme("run", scenario, "--quiet", "--out", os.path.join(folder, "run"))
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(os.path.join(folder, "run", "summary.json"), encoding="utf-8") as file:
                self.assertGreater(seconds_of(file.read()), 10.0)  # nobody is there before

    def test_a_pickle_that_calls_something_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.convert(folder, {1: subprocess.Popen})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("it names subprocess.Popen", done.stderr)


if __name__ == "__main__":
    run_tests()
