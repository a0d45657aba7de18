"""Devices through the program: profiles by name and by file, calibration, traces in FedScale's format, traces that
end too early."""
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

    def test_a_calibrated_profile_is_read_back_and_another_net_or_batch_is_reported(self):
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

    def test_errors_of_profiles_have_their_location(self):
        self.write("odd.toml", 'flops_per_secnd = 1.0\n[link]\nuplink_mbit = -3\n')
        for devices, words in (('profiles = [{ name = "raspbery-pi-5" }]', 'did you mean "raspberry-pi-5"?'),
                               ('profiles = [{ share = 1 }]', "expected one of name, file and text"),
                               ('profiles = [{ name = "lte" }]', "has no computing speed"),
                               ('profiles = [{ name = "rtx-3060-ti", link = "raspberry-pi-5" }]', "has no [link]"),
                               ('profiles = [{ file = "odd.toml" }]', "did you mean 'flops_per_second'?"),
                               ('profiles = [{ file = "odd.toml" }]', "odd.toml:3:15: error: link.uplink_mbit = -3"),
                               ("server_uplink_mbit = -1", "devices.server_uplink_mbit = -1")):
            with self.subTest(devices=devices):
                done, _ = self.run_with("wrong", devices + "\n")
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(words, done.stderr)

    def refused(self, devices, words):
        """`validate` and `run` both report the error with exit code 2, and no run starts."""
        scenario = self.write("wrong.toml", TINY + "[devices]\n" + devices)
        out = self.path("refused")
        for arguments in (["validate", scenario], ["run", scenario, "--quiet", "--out", out]):
            done = mneme(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertIn(words, done.stderr)
        self.assertFalse(os.path.exists(out))

    def test_a_profile_without_the_net_is_refused_at_its_key(self):
        self.write("other.toml", '[[nets]]\nnet = "mlp"\nparameters = 10\nbatch = 8\ntrain_rows_per_second = 5\n')
        line = TINY.count("\n") + 2
        self.refused('profiles = [{ file = "other.toml" }]\n',
                     f"wrong.toml:{line}:12: error: {self.path('other.toml')} has no [[nets]] entry with "
                     'net = "linear", parameters = 10, and no flops_per_second; expected one of them')

    def test_negative_and_zero_rates_are_refused_with_their_location(self):
        entry = '[[nets]]\nnet = "linear"\nparameters = 10\nbatch = 8\n'
        for profile, words in (("flops_per_second = -1.0\n", "rates.toml:1:20: error: flops_per_second = -1"),
                               ("bytes_per_second = -1.0\n", "rates.toml:1:20: error: bytes_per_second = -1"),
                               (entry + "train_rows_per_second = -5.0\n", "rates.toml:5:25: error: "),
                               (entry + "train_rows_per_second = 0\n", "rates.toml:5:25: error: "),
                               (entry + "train_rows_per_second = 5\nforward_rows_per_second = -5\n",
                                "rates.toml:6:27: error: "),
                               ("flops_per_second = 1e9\n[link]\ndownlink_mbit = -3\n", "rates.toml:3:17: error: "),
                               ("flops_per_second = 1e9\n[link]\njitter = -1\n", "rates.toml:3:10: error: ")):
            with self.subTest(profile=profile):
                self.write("rates.toml", profile)
                self.refused('profiles = [{ file = "rates.toml" }]\n', words)

    def test_errors_of_a_capacity_file_have_line_numbers(self):
        for lines, words in (("rows_per_second\n0,-4\n", "csv:2: error: rows_per_second = -4: expected rows"),
                             ("rows_per_second\n0,5\n1,0\n", "csv:3: error: rows_per_second = 0: expected more"),
                             ("uplink_mbit\n0,-1\n", "csv:2: error: uplink_mbit = -1: expected megabits per second"),
                             ("downlink_mbit\n6,1\n", "csv:2: error: client = 6: expected a whole number from 0 to 5"),
                             ("profile\n0,0\n", "csv:2: error: profile = 0: expected a whole number below 0"),
                             ("uplink_mbit\n0,1\n0,2\n", "csv:3: error: client 0 has line 2 already"),
                             ("uplink_mbit\n0\n", "csv:2: error: the line has 1 fields; expected 2")):
            with self.subTest(lines=lines):
                self.write("capacity.csv", "client," + lines)
                self.refused('capacity_file = "capacity.csv"\n', words)
        self.write("capacity.csv", "device,uplink_mbit\n0,1\n")
        self.refused('capacity_file = "capacity.csv"\n', "csv:1: error: the header names no column 'client'")
        self.refused('capacity_file = "none.csv"\n', 'none.csv": expected a file, found nothing')

    def test_errors_of_traces_have_line_numbers(self):
        links, there = 'link_file = "trace.csv"\n', 'availability = "file"\navailability_file = "trace.csv"\n'
        repeat = 'trace_end = "repeat"\n'
        for devices, rest, values in ((links, ",uplink_mbit,downlink_mbit", ",1,1"), (there, "", "")):
            header = f"client,from,to{rest}"
            for lines, words in (((f"0,0,5{values}", f"0,4,9{values}"),
                                  "csv:3: error: client 0: from = 4 lies within its span of line 2, which ends at 5"),
                                 ((f"0,7,5{values}",), "csv:2: error: from = 7, to = 5: expected a time that ends"),
                                 ((f"0,-1,5{values}",), "csv:2: error: from = -1: expected seconds"),
                                 ((f"0,soon,5{values}",), "csv:2: error: from = soon: expected seconds"),
                                 ((f"9,0,5{values}",), "csv:2: error: client = 9: expected a whole number"),
                                 ((f"0,0{values}",), "csv:2: error: the line has ")):
                with self.subTest(lines=lines):
                    self.write("trace.csv", "\n".join((header, *lines, "")))
                    self.refused(devices, words)
            self.write("trace.csv", f"{header},period\n0,0,5{values},4\n")
            self.refused(devices + repeat, "csv:2: error: to = 5, period = 4: expected a period that does not end")
            self.write("trace.csv", f"{header}\n0,0,5{values}\n")
            self.refused(devices + repeat + 'trace_period = "3 s"\n',
                         "csv:2: error: to = 5: expected no span that ends after devices.trace_period = 3 s")
        self.write("trace.csv", "client,from,to,uplink_mbit,downlink_mbit\n0,0,5,-1,1\n")
        self.refused(links, "csv:2: error: uplink_mbit = -1: expected megabits per second")

    def test_a_trace_that_ends_during_its_clients_round_is_refused_before_the_run(self):
        self.write("links.csv", "client,from,to,uplink_mbit,downlink_mbit\n" +
                   "".join(f"{client},0,0.01,1,1\n" for client in range(6)))
        words = r"links\.csv:[2-7]: error: client [0-5]: its trace ends at 0\.01 s, but round [12] still waits for it"
        for name, shared in (("own", ""), ("shared", "server_uplink_mbit = 1000\n")):
            ended = 'link_file = "links.csv"\nlatency = "0 s"\n' + shared
            self.refused(ended, 'expected a trace as long as the run, devices.trace_end = "repeat", or a '
                                'rounds.deadline')
            done = mneme("validate", self.path("wrong.toml"))
            self.assertRegex(done.stderr, words)
            done, _ = self.run_with(name, ended + 'trace_end = "repeat"\n')
            self.assertEqual(done.returncode, 0, done.stderr)
        self.write("links.csv", "client,from,to,uplink_mbit,downlink_mbit\n" +
                   "".join(f"{client},0,1000,1,1\n" for client in range(6)))
        done, _ = self.run_with("long", 'link_file = "links.csv"\n')
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_unknown_message_sizes_limit_the_check_to_round_1_and_later_stalls_fail(self):
        """Broadcasts and jobs of round 1 are known before any client computes; an upload has at least one byte."""
        up, down = "server_uplink_mbit = 1000\n", "server_downlink_mbit = 1000\n"
        for last, shared, is_known in (("0.0001", "", True), ("0.0001", down, True), ("0.01", "", True),
                                       ("0.01", up, False), ("0.03", "", False)):  # ends in download, upload, upload
            self.write("links.csv", "client,from,to,uplink_mbit,downlink_mbit\n" +
                       "".join(f"{client},0,{last},1,1\n" for client in range(6)))
            scenario = self.write("ended.toml", TINY.replace('"fedavg"', '"scaffold"') + "[devices]\n" + shared +
                                  'rows_per_second = 2000\nlink_file = "links.csv"\nlatency = "0 s"\n')
            with self.subTest(last=last, shared=shared):
                done = mneme("run", scenario, "--quiet", "--out", self.path(f"{last}-{len(shared)}"))
                self.assertEqual(done.returncode, 2 if is_known else 1, done.stderr)
                words = (rf"links\.csv:[2-7]: error: client [0-5]: its trace ends at {float(last):g} s, but round 1 "
                         "still waits" if is_known else "a trace of devices.link_file may have ended")
                self.assertRegex(done.stderr, words)
                self.assertEqual(mneme("validate", scenario).returncode, 2 if is_known else 0)

    def test_a_population_that_is_never_online_is_refused_for_any_method(self):
        self.write("there.csv", "client,from,to\n")
        for method in ("fedavg", "scaffold", "stsa"):
            scenario = self.write("nobody.toml", TINY.replace('"fedavg"', f'"{method}"') +
                                  '[devices]\navailability = "file"\navailability_file = "there.csv"\n')
            done = mneme("validate", scenario)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"nobody\.toml:\d+:\d+: error: .*'.*there\.csv' has no spans, so no")

    def test_a_run_whose_clients_go_offline_for_good_is_refused(self):
        self.write("there.csv", "client,from,to\n" + "".join(f"{client},0,0.00{1 + client}\n" for client in range(6)))
        file = 'availability = "file"\navailability_file = "there.csv"\n'
        words = ("there.csv:7: error: client 5 has the last trace, which ends at 0.006 s; round 2 finds no "
                 'client after that; expected traces as long as the run, or devices.trace_end = "repeat"')
        self.refused(file, words)
        self.assertIn(words, mneme("validate", self.path("wrong.toml")).stderr)
        for method in ("scaffold", "fedavg"):
            scenario = self.write("ended.toml", TINY.replace('"fedavg"', f'"{method}"') + "[devices]\n" + file)
            done = mneme("run", scenario, "--quiet", "--out", self.path(method))
            self.assertEqual(done.returncode, 1 if method == "scaffold" else 2, done.stderr)
            self.assertIn("have ended for every enrolled client" if method == "scaffold" else words, done.stderr)
        done, _ = self.run_with("again", file + 'trace_end = "repeat"\n')
        self.assertEqual(done.returncode, 0, done.stderr)


class FedScale(unittest.TestCase):
    def convert(self, folder, entries, kind="availability", clients=5):
        path = os.path.join(folder, "trace.pickle")
        with open(path, "wb") as file:
            pickle.dump(entries, file)
        return subprocess.run([sys.executable, os.path.join(ROOT, "tools", "fedscale_traces.py"), f"--{kind}", path,
                               "--clients", str(clients), "-o", folder], capture_output=True, text=True)

    def test_fedscale_traces_become_csv_files_that_a_run_reads(self):
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
                self.assertGreater(seconds_of(file.read()), 10.0)  # no client is reachable before

    def test_a_pickle_with_calls_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.convert(folder, {1: subprocess.Popen})
            self.assertNotEqual(done.returncode, 0)
            self.assertIn("it refers to subprocess.Popen", done.stderr)


if __name__ == "__main__":
    run_tests()
