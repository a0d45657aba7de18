"""tools/bench/run with fake programs, and the arithmetic of the benchmarks. Nothing is timed."""
import json
import os
import re
import stat
import subprocess
import sys
import tempfile
import unittest
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

BENCH = os.path.join(ROOT, "tools", "bench")
sys.path.insert(0, BENCH)
sys.dont_write_bytecode = True
import figures  # noqa: E402
import machine  # noqa: E402
import picture  # noqa: E402
import table  # noqa: E402
import workloads  # noqa: E402

# Fake costs: 0.5 s to start a run, 1 ms of one thread for a client-round, 40 MB and 0.25 s for a million clients.
MNEME = """
import json, os, sys
words = sys.argv[1:]
if words == ["--version"]:
    sys.exit(print("mneme canned"))
if words[0] == "node":
    import time
    time.sleep(100)
options = dict(word.split("=") for word in words if "=" in word)
threads = int(words[words.index("--threads") + 1])
scenario, rounds = words[1], int(options["rounds.per_task"])
many = 1e6 if "1m" in scenario else float(options.get("clients.count", 1e4))
client_rounds = 100 * rounds
looks = 0 if options.get("enrolment.initial") == "10" else 100 * rounds
out = words[words.index("--out") + 1]
os.mkdir(out)
with open(os.path.join(out, "summary.json"), "w") as file:
    json.dump({"scenario": scenario, "client_rounds": client_rounds, "looks": looks,
               "upload_bytes": 4 * client_rounds * (1626442 if "b1" in scenario else 2410),
               "cpu_seconds": 0.5 + many * 0.25e-6 + client_rounds * 1e-3 + looks * WATCH,
               "wall_seconds": looks * WATCH + client_rounds * 1e-3 / (
                   1.9 if threads == 2 else 20 if "cuda" in str(words) else 0.95 if "--accept" in words else 1),
               "peak_rss_bytes": int(1e8 + 40 * many), "run_digest": DIGEST}, file)
"""
LOOPS = """
import json, sys
if sys.argv[1] == "limits":
    print(json.dumps({"flops_per_second": 1e9, "bytes_per_second": 1e9}))
else:
    width = int(sys.argv[sys.argv.index("--width") + 1])
    rate = 100.0 if "bare" in sys.argv[1] else 800.0 - abs(width - 64)
    rate *= 5 if "cuda:0" in sys.argv else 1
    print(json.dumps({"client_rounds": 1000, "cpu_seconds": 1000 / rate, "wall_seconds": 2000 / rate,
                      "peak_rss_bytes": 50000000, "first_norm": NORM, "last_norm": 2.0}))
"""
PROGRAMS = """
import json, sys
width = int(sys.argv[sys.argv.index("--width") + 1])
print(json.dumps({"steps": 1280, "cpu_seconds": 64 / width ** 0.5, "wall_seconds": 64.0, "peak_rss_bytes": 50000000,
                  "digest": DIGEST}))
"""

LINK = """
import json, sys
print(json.dumps({"bytes_per_second": 3e8 if "--tls" in sys.argv else 5e8, "cpu_seconds": 2.0, "wall_seconds": 1.0,
                  "peak_rss_bytes": 50000000}))
"""


def numbers_of(path):
    """Returns the numbers of the scenario at `path`, in the form of a workload."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        text = file.read()

    def number(pattern):
        return int(re.search(pattern, text).group(1))

    hidden = re.search(r"hidden = \[(\d+)\]", text)
    clients, rows = number(r"clients\.count = (\d+)"), number(r"\[data\](?:.|\n)*\brows = (\d+)")
    return {"shape": tuple(map(int, re.search(r"shape = \[(.*)\]", text).group(1).split(","))),
            "hidden": int(hidden.group(1)) if hidden else 0, "clients": clients, "rows": rows // clients,
            "cohort": number(r"cohort = (\d+)"), "batch": number(r"batch = (\d+)")}


class Workloads(unittest.TestCase):
    def test_loop_workloads_equal_the_bench_scenarios(self):
        for work in workloads.TRAINING.values():
            said = numbers_of(work.scenario)
            self.assertEqual(said, {key: getattr(work, key) for key in said}, work.name)

    def test_flops_and_memory_traffic_of_a_client_round_are_counted(self):
        self.assertEqual(workloads.parameters(workloads.B1), 1_626_442)
        self.assertEqual(workloads.parameters(workloads.B2), 64 * 32 + 32 + 320 + 10)
        self.assertEqual(workloads.flops(workloads.B2), 50 * (4 * 64 * 32 + 6 * 32 * 10))
        self.assertEqual(workloads.flops(workloads.B1), 4_972_800_000)
        self.assertEqual(workloads.memory_bytes(workloads.B2), 50 * 64 + 12 * 2410)


class Figures(unittest.TestCase):
    def test_the_cost_of_a_client_round_excludes_the_start_of_a_run(self):
        few = {"client_rounds": 100, "cpu_seconds": 0.7, "wall_seconds": 0.2, "peak_rss_bytes": 5, "run_digest": "a"}
        many = {"client_rounds": 500, "cpu_seconds": 1.5, "wall_seconds": 0.6, "peak_rss_bytes": 7, "run_digest": "b",
                "upload_bytes": 2000}
        sample = figures.our_sample(few, many)
        self.assertEqual(sample["upload_bytes"], 4)
        self.assertAlmostEqual(sample["cpu_rate"], 500)
        self.assertAlmostEqual(sample["wall_rate"], 1000)
        self.assertAlmostEqual(sample["whole_cpu_rate"], 500 / 1.5)
        self.assertAlmostEqual(sample["start_seconds"], 0.5)
        with self.assertRaisesRegex(ValueError, "more rounds"):
            figures.our_sample(many, few)

    def test_ratios_are_medians_over_pairs_of_samples(self):
        ours, theirs = ([{"cpu_rate": rate} for rate in rates] for rates in ([10, 20, 90], [10, 10, 10]))
        self.assertEqual(figures.ratio(ours, theirs), {"median": 2, "min": 1, "max": 9})

    def test_verdicts_depend_on_the_direction_of_a_target(self):
        measured = {"median": 1.5, "min": 1.0, "max": 3.0}
        self.assertTrue(figures.at_least("x", measured, 1.5)["met"])
        self.assertFalse(figures.at_least("x", measured, 1.6)["met"])
        self.assertTrue(figures.at_most("x", measured, 1.5)["met"])
        self.assertFalse(figures.at_most("x", measured, 1.4)["met"])

    def test_unequal_digests_and_unequal_work_are_refused(self):
        self.assertEqual(figures.same_digest([{"run_digest": "a"}, {"run_digest": "a"}], "x"), "a")
        with self.assertRaisesRegex(ValueError, "x: equal runs gave unequal digests: a, b"):
            figures.same_digest([{"run_digest": "b"}, {"run_digest": "a"}], "x")
        figures.agree({"a": 1.0, "b": 1.0 + 1e-7}, 1e-5)
        for other in (1.001, float("nan")):
            with self.assertRaisesRegex(ValueError, "disagree"):
                figures.agree({"a": 1.0, "b": other}, 1e-5)

    def test_busy_time_excludes_idle_waiting_and_stolen_time(self):
        stat = "cpu  100 20 30 9999 8888 4 6 7777 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
        self.assertAlmostEqual(machine.busy_seconds(stat), 160 / os.sysconf("SC_CLK_TCK"))

    def test_other_programs_load_is_reported(self):
        report = {"machine": {"cpu": "x", "cores": 2, "cores_of_others": 0.05}, "mneme": "mneme 1", "repeat": 5,
                  "quick": False, "benchmarks": []}
        self.assertEqual(table.text(report), "x, 2 cores; mneme 1; medians of 5\n")
        report["machine"]["cores_of_others"] = 0.5
        self.assertIn("Other programs used 0.5 cores", table.text(report))

    def test_numbers_have_three_digits(self):
        self.assertEqual([table.short(n) for n in (0, 0.07812, 1.4, 12, 999.6, 1234.5, 67904, 338123)],
                         ["0", "0.0781", "1.4", "12", "1,000", "1,230", "67,900", "338,000"])


class CannedPrograms(unittest.TestCase):
    """Base class: a folder of fake programs that print values from tables."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!{sys.executable} -IS\n" + text)
        os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)


class Run(CannedPrograms):
    """tools/bench/run as a whole."""

    def run_bench(self, *arguments, digest="'d' * 32", norm="1.0", look="0.0"):
        self.program("mneme", MNEME.replace("DIGEST", digest).replace("WATCH", look))
        self.program("bench_loops", LOOPS.replace("NORM", norm))
        self.program("bench_link", LINK)
        self.program("bench_programs", PROGRAMS.replace("DIGEST", digest.replace("threads", "width")))
        return subprocess.run([sys.executable, os.path.join(BENCH, "run"), "--programs", self.folder, *arguments],
                              capture_output=True, text=True)

    def test_text_json_and_chart_have_equal_results(self):
        paths = [os.path.join(self.folder, name) for name in ("out.json", "out.svg")]
        done = self.run_bench("b7", "b3", "b6", "b5", "b2", "--repeat", "1", "--json", paths[0], "--picture", paths[1])
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(paths[0], encoding="utf-8") as file:
            report = json.load(file)
        by_name = {result["name"]: result for result in report["benchmarks"]}
        self.assertEqual(list(by_name), ["b2", "b3", "b5", "b6", "b7"])

        ours, bare, *stacked = by_name["b2"]["contenders"]
        self.assertAlmostEqual(ours["cpu_rate"], 1000)
        self.assertAlmostEqual(bare["ratio"]["median"], 10)
        self.assertEqual([line["width"] for line in stacked], [64, 64, 64])
        self.assertAlmostEqual(by_name["b2"]["verdicts"][0]["measured"]["median"], 1000 / 800)
        self.assertFalse(by_name["b2"]["verdicts"][0]["met"])
        self.assertAlmostEqual(by_name["b2"]["limits"]["gemm"]["cpu_rate"], 1e9 / workloads.flops(workloads.B2))
        self.assertIn("MISSED to the fastest stacked loop (stacked, autograd): 1.25 (1.25 - 1.25); "
                      "wanted >= 1.4, aim 1.5", done.stdout)

        no_op = [verdict["measured"]["median"] for verdict in by_name["b3"]["verdicts"]]
        for found, expected in zip(no_op, (1000, 1, 40, 0.2475)):
            self.assertAlmostEqual(found, expected)
        rate, growth = [verdict["measured"]["median"] for verdict in by_name["b5"]["verdicts"]]
        self.assertAlmostEqual(rate, 1000)
        self.assertAlmostEqual(growth, 1)
        self.assertEqual([verdict["met"] for verdict in by_name["b5"]["verdicts"]], [False, True])
        self.assertAlmostEqual(by_name["b6"]["verdicts"][0]["measured"]["median"], 1)
        self.assertEqual([verdict["met"] for verdict in by_name["b7"]["verdicts"]], [True, True])
        self.assertIn("ok     b1: two threads to one, same digest: 1.9 (1.9 - 1.9); wanted >= 1.8", done.stdout)

        with open(paths[1], encoding="utf-8") as file:
            drawn = file.read()
        texts = [node.firstChild.data for node in xml.dom.minidom.parseString(drawn).getElementsByTagName("text")]
        self.assertIn(by_name["b2"]["title"], texts)
        self.assertIn("1,000", texts)
        self.assertEqual(drawn, picture.svg(report))
        self.assertEqual(done.stdout, table.text(report))

    def test_digests_that_depend_on_threads_fail_the_benchmark(self):
        done = self.run_bench("b7", "--quick", digest="str(threads)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("b7, b1: equal runs gave unequal digests: 1, 2", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_stacked_programs_are_compared_with_sequential_ones(self):
        path = os.path.join(self.folder, "out.json")
        done = self.run_bench("b9", "--repeat", "1", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            result, = json.load(file)["benchmarks"]
        self.assertEqual([line["width"] for line in result["contenders"]], [1, 16, 64] * 2)
        self.assertAlmostEqual(result["contenders"][0]["cpu_rate"], 20)
        self.assertEqual([verdict["measured"]["median"] for verdict in result["verdicts"]], [8, 8])
        self.assertIn("program-steps a second", done.stdout)
        self.assertIn("ok     generator: 64 stacked to one after another, same bits: 8 (8 - 8); wanted >= 5",
                      done.stdout)
        other = self.run_bench("b9", "--quick", digest="str(threads)")
        self.assertEqual(other.returncode, 1)
        self.assertIn("b9, generator: equal runs gave unequal digests: 1, 16, 64", other.stderr)

    def test_a_node_is_compared_with_one_process_and_the_link(self):
        path = os.path.join(self.folder, "out.json")
        done = self.run_bench("b11", "--repeat", "1", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            result, = json.load(file)["benchmarks"]
        found = {line["label"]: round(line["wall_rate"], 3) for line in result["contenders"]}
        self.assertEqual(found["b2, one process"], 1000)
        self.assertEqual(found["b2, one node"], 950)
        self.assertEqual(found["b1, its uploads alone, plain"], round(5e8 / (4 * 1626442), 3))
        self.assertEqual(found["resnet18, one node"], 950)
        shares = [round(verdict["measured"]["median"], 3) for verdict in result["verdicts"][:2]]
        self.assertEqual(shares, [round(950 / (5e8 / (4 * 1626442)), 3), 0.95])  # the link limits b1
        self.assertIn("ok     bytes of tensors a second in messages of 6 MiB, plain", done.stdout)
        self.assertIn("MISSED bytes of tensors a second in messages of 1 MiB, TLS", done.stdout)

    def test_an_observation_costs_the_additional_time_of_rounds_with_observers(self):
        done = self.run_bench("b12", "--repeat", "1", look="4e-5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("looks a second", done.stdout)
        self.assertIn("25,000", done.stdout)
        self.assertIn("ok     us of CPU per observation: 40 (40 - 40); wanted <= 200", done.stdout)
        other = self.run_bench("b12", "--quick")
        self.assertEqual(other.returncode, 1)
        self.assertIn("rounds with observers took no longer than those without", other.stderr)

    def test_fused_low_rank_parts_are_compared_with_single_clients(self):
        done = self.run_bench("b15", "--repeat", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("16 clients in a group to one after another: 1 (1 - 1)", done.stdout)
        other = self.run_bench("b15", "--quick", digest="options['worker.fused_clients_max']")
        self.assertEqual(other.returncode, 1)
        self.assertIn("b15: equal runs gave unequal digests: 1, 16", other.stderr)

    def test_a_device_is_compared_with_the_cpu_and_the_loop(self):
        path = os.path.join(self.folder, "out.json")
        done = self.run_bench("b2", "--device", "cuda:0", "--repeat", "1", "--json", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path, encoding="utf-8") as file:
            (result,) = json.load(file)["benchmarks"]
        found = {line["label"]: line["wall_rate"] for line in result["contenders"]}
        wanted = {"mneme on cuda:0": 20_000, "mneme on cpu": 1000, "bare LibTorch loop on cuda:0": 250,
                  "bare LibTorch loop on cpu": 50}
        self.assertEqual({label: round(rate, 6) for label, rate in found.items()}, wanted)
        self.assertEqual([round(verdict["measured"]["median"], 6) for verdict in result["verdicts"]], [80, 20])
        self.assertIn("ok     to the bare LibTorch loop on cuda:0: 80 (80 - 80); wanted >= 1, aim 10", done.stdout)

    def test_benchmarks_without_training_refuse_a_device(self):
        done = self.run_bench("b3", "--device", "cuda:0")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--device goes with b1, b2, b2c only", done.stderr)

    def test_loops_with_different_weights_fail_the_benchmark(self):
        done = self.run_bench("b2", "--quick", norm="1.0 if 'bare' in sys.argv[1] else 1.1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the loops disagree after one round", done.stderr)

    def test_a_scenario_with_another_model_fails_the_benchmark(self):
        with self.assertRaisesRegex(ValueError, "b2.toml uploads 2,411 weights a client-round, the loops 2,410"):
            figures.same_model({"scenario": "b2.toml", "client_rounds": 3, "upload_bytes": 12 * 2411}, 2410)

    def test_the_error_of_a_failed_program_is_printed(self):
        done = self.run_bench("b3", digest="sys.exit('no such scenario')")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no such scenario", done.stderr)

    def test_unknown_names_are_bad_usage(self):
        done = self.run_bench("b4")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unknown benchmark 'b4'; expected one of b1, b2, b2c, b3, b5, b6, b7, b9, b11, "
                      "b12, b13, b15", done.stderr)


class RunInPython(CannedPrograms):
    """tools/bench/python with a fake program and a fake Python."""

    def run_bench(self, *arguments, digest="'d' * 32", bench="python", python=None):
        package = os.path.join(self.folder, "mneme", "bin")
        os.makedirs(package, exist_ok=True)
        text = MNEME.replace("DIGEST", digest).replace("WATCH", "0.0")
        self.program("python", python or text.replace("sys.argv[1:]", "sys.argv[3:]"))
        self.program(os.path.join(package, "mneme"), text)
        environment = {**os.environ, "MNEME_PACKAGE": self.folder, "MNEME_PYTHON": os.path.join(self.folder, "python")}
        return subprocess.run([sys.executable, os.path.join(BENCH, bench), *arguments], capture_output=True,
                              text=True, env=environment)

    def test_rates_and_ratio_are_printed(self):
        done = self.run_bench("b2", "--repeat", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("b2: built in 1,000.0, in Python 1,000.0 client-rounds per second of CPU: 1.000 (from 1.000 to "
                      "1.000); wanted: 0.5\n", done.stdout)

    def test_a_different_digest_of_the_python_method_fails_the_benchmark(self):
        done = self.run_bench("b2", digest="str('-m' in sys.argv)")
        self.assertEqual(done.returncode, 1)
        self.assertIn("b2: two digests of one method: False, True", done.stderr)

    def test_traced_nets_are_compared_with_built_in_nets(self):
        nets = {name: {"layers": ["flatten", "linear classes"], "weights": "w.safetensors"}
                for name in ("lenet", "resnet18", "vit")}
        done = self.run_bench("lenet", "vit", "--quick", "--repeat", "1", bench="traced_nets",
                              python=f"import json\nprint(json.dumps({nets!r}))\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("lenet: the zoo's 1,000.0, traced 1,000.0 client-rounds per second of CPU: 1.000", done.stdout)
        done = self.run_bench("lenet", "--quick", bench="traced_nets", digest="str('model.name=layers' in sys.argv)",
                              python=f"import json\nprint(json.dumps({nets!r}))\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("lenet: two digests of one net: False, True", done.stderr)

    def test_common_nets_are_compared_with_the_faster_layout_of_the_loop(self):
        loop = "import json\nprint(json.dumps({'upload_bytes': 9640, 'peak_rss_bytes': 2**30, " \
               "'cpu_rate': {'channels-first': 400.0, 'channels-last': 500.0}}))\n"
        done = self.run_bench("lenet28:32", "vit", "--quick", "--repeat", "1", bench="nets", python=loop)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| lenet28 | 32 | 1,000 | 500 (channels-last) | 2.00 (2.00 to 2.00) | 96 | 1,024 |\n",
                      done.stdout)
        self.assertEqual(re.findall(r"^\| vit \| (\d+) ", done.stdout, re.M), ["10", "32", "64"])
        done = self.run_bench("lenet28:32", "--quick", bench="nets", python=loop.replace("9640", "9644"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("lenet28: uploads of 9,640 and 9,644 bytes", done.stderr)
        for word, error in (("alexnet", "no net is called 'alexnet'"),
                            ("vit:65", "a batch size is a number from 1 to 64")):
            done = self.run_bench(word, bench="nets", python=loop)
            self.assertEqual(done.returncode, 2)
            self.assertIn(error, done.stderr)

    def test_exported_nets_are_compared_fused_and_unfused_with_the_loop(self):
        loop = "import json, sys\nif '--export' in sys.argv:\n    open(sys.argv[-1], 'w').close()\nelse:\n" \
               "    print(json.dumps({'upload_bytes': 9640, 'peak_rss_bytes': 2**30, " \
               "'cpu_rate': {'channels-first': 400.0, 'channels-last': 500.0}}))\n"
        done = self.run_bench("--exported", "--quick", "--repeat", "1", bench="nets", python=loop)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| resnet18 | 32 | 1,000 | 1,000 | 500 | 1.00 (1.00 to 1.00) | 2.00 (2.00 to 2.00) | "
                      "2.00 (2.00 to 2.00) |\n", done.stdout)
        done = self.run_bench("--exported", "--programs", "there", bench="nets", python=loop)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--exported needs the Python package", done.stderr)

    def test_user_data_are_written_and_read(self):
        self.program("reader", "import sys\nsys.exit(not sys.argv[2].endswith('pictures'))\n")
        reader = os.path.join(self.folder, "reader")
        words = [sys.executable, os.path.join(BENCH, "own_rows"), "--quick", "--repeat", "1", "--program", reader]
        done = subprocess.run([*words, "pictures"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"pictures: 600 rows read in \d+\.\d+ s wall, .* MiB at the peak\n")
        self.assertEqual(subprocess.run([*words, "table"], capture_output=True, text=True).returncode, 1)


if __name__ == "__main__":
    run_tests()
