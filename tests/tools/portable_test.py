"""Portable arithmetic: every smoke scenario has a golden digest, and this test reproduces some of them."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_digests import COMMAND, golden, names, portable_run  # noqa: E402
from node_processes import NodesCase, free_port  # noqa: E402
from program import PROGRAM, mneme, run_tests  # noqa: E402

# A net of each kind, and other computations: sums, solves, random draws.
COMPUTED = ["smoke/fedavg", "smoke/cnn", "smoke/stsa"]


class Portable(unittest.TestCase):
    def test_every_smoke_scenario_has_a_golden_digest(self):
        for name in names():
            self.assertIsNotNone(golden(name), f"{name} has none; write it with `{COMMAND} {name}`: nobody may "
                                               "change it after that without saying why")

    def test_portable_digests_equal_the_golden_ones(self):
        for name in COMPUTED:
            with self.subTest(name):
                found, machine = portable_run(name)
                print(f"{name} on {machine.get('processor')}, C library {machine.get('C library')}, "
                      f"LibTorch {machine.get('LibTorch')}, {machine.get('compiler')}")
                self.assertEqual(found, golden(name))

    def test_portable_digests_do_not_depend_on_other_instruction_sets(self):
        """Tests something only on processors with AVX-512; others always use the AVX2 versions."""
        for name, variable, value in (("smoke/cnn", "MNEME_KERNELS", "avx2"),
                                      ("smoke/stsa-cprompt", "ONEDNN_MAX_CPU_ISA", "AVX2")):  # a transformer with GELU
            with self.subTest(name):
                found, _ = portable_run(name, {variable: value})
                self.assertEqual(found, golden(name))

    def test_the_build_sets_the_contraction_of_products_explicitly(self):
        """convolution.cpp has 846 fused operations with -ffp-contract=fast, and none with `off`, which gives other
        bits."""
        commands = os.path.join(os.path.dirname(PROGRAM), "compile_commands.json")
        if not os.path.exists(commands):
            self.skipTest("the program does not lie in the folder that it was built in")
        with open(commands, encoding="utf-8") as file:
            lines = [entry["command"] for entry in json.load(file)]
        for layer in ("mneme_kernels", "mneme_portable"):
            own = [line for line in lines if f"CMakeFiles/{layer}.dir/" in line and "-x c++-header" not in line]
            self.assertGreater(len(own), 0, layer)
            for line in own:
                self.assertIn(" -ffp-contract=fast ", line)

    def test_arithmetic_is_reported_and_kept_on_resume(self):
        with tempfile.TemporaryDirectory() as scratch:
            out = os.path.join(scratch, "run")
            done = mneme("run", "scenarios/smoke/fedavg.toml", "scenarios/smoke/fedprox.toml", "--out",
                         scratch + "/two", "--set", "worker.arithmetic=portable", "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            done = mneme("verify", os.path.join(scratch, "two", "fedavg"), "--quiet")
            self.assertEqual(done.returncode, 0, done.stderr)
            wrong = mneme("run", "scenarios/smoke/fedavg.toml", "--out", out,
                          environment={**os.environ, "MNEME_ARITHMETIC": "exact"})
            self.assertEqual(wrong.returncode, 2)
            self.assertIn("expected machine or portable", wrong.stderr)
            mixed = mneme("run", "scenarios/smoke/fedavg.toml", "--out", out, "--quiet",
                          environment={**os.environ, "MNEME_ARITHMETIC": "portable"})
            self.assertEqual(mixed.returncode, 2)
            self.assertIn("its environment), but worker.arithmetic = \"machine\"", mixed.stderr)


class PortableNodes(NodesCase):
    def test_nodes_use_the_arithmetic_of_their_run(self):
        def portable_node():
            address = f"127.0.0.1:{free_port()}"
            self.node(address, "--threads", "1", "--arithmetic", "portable")
            return "--accept", address, "--workers-min", "1"
        found = self.summary("scenarios/smoke/fedavg.toml", "--set", "worker.arithmetic=portable", *portable_node())
        self.assertEqual({"run_digest": found["run_digest"]}, golden("smoke/fedavg"))
        other = mneme("run", "scenarios/smoke/fedavg.toml", *portable_node(), "--out", self.out(), "--set",
                      "worker.join_timeout=\"3 s\"")
        self.assertEqual(other.returncode, 2, other.stderr)
        self.assertIn("has a different arithmetic: portable; expected that of the run, machine", other.stderr)


if __name__ == "__main__":
    run_tests()
