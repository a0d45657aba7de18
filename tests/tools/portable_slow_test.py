"""Golden digests of portable arithmetic on simulated machines: environment variables select other processors, caches
and core counts in libraries, and QEMU, if installed, emulates the processors of two vendors."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from golden_digests import golden, names, portable_run  # noqa: E402
from program import data_found, run_tests  # noqa: E402

CACHES = ":".join(f"glibc.cpu.x86_{name}={size}" for name, size in
                  (("data_cache_size", 16384), ("shared_cache_size", 262144), ("non_temporal_threshold", 65536)))
MACHINES = {
    "this one, one thread": {"threads": 1},
    "MKL for AVX2": {"environment": {"MKL_CBWR": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}, "threads": 3},
    "MKL for any": {"environment": {"MKL_CBWR": "COMPATIBLE", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}, "threads": 8},
    "oneDNN and ATen without vectors": {
        "environment": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default"}, "threads": 4},
    "kernels without vectors": {"environment": {"MNEME_KERNELS": "plain", "OMP_NUM_THREADS": "5"}, "threads": 2},
    "a C library for old processors": {
        "environment": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-AVX512F,-ERMS,-AVX_Fast_Unaligned_Load:" + CACHES},
        "threads": 5},
}
if shutil.which("taskset"):
    MACHINES["one core"] = {"before": ["taskset", "-c", "0"], "threads": 6}
QEMU = shutil.which("qemu-x86_64") or shutil.which("qemu-x86_64-static")
PROCESSORS = ["EPYC", "Haswell", "Skylake-Client"]
SMALLEST = ["smoke/fedavg", "smoke/fedprox"]
# The program sets these variables and restarts itself. The test sets them, because a restart leaves the emulator.
BOUND = {"MNEME_ARITHMETIC": "portable", "ATEN_CPU_CAPABILITY": "avx2",
         "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4"}


class SimulatedMachines(unittest.TestCase):
    def check(self, name, **how):
        self.assertEqual(portable_run(name, **how)[0], golden(name))

    def test_golden_digests_hold_on_all_emulated_processors(self):
        for name in names():
            if name == "quickstart" and not data_found("fashion-mnist"):
                continue
            for machine, how in MACHINES.items():
                with self.subTest(name, machine=machine):
                    self.check(name, **how)

    @unittest.skipUnless(QEMU, "no qemu-x86_64 to show the program other processors (tools/bootstrap --slow brings "
                               "it; Debian's package is qemu-user)")
    def test_golden_digests_hold_on_processors_of_two_vendors(self):
        for processor in PROCESSORS:
            for name in SMALLEST:
                with self.subTest(name, processor=processor):
                    found, machine = portable_run(name, environment=BOUND, before=[QEMU, "-cpu", processor], threads=1)
                    print(f"{name} on QEMU's {processor}:", *found.values(), "mneme's kernels:",
                          machine.get("mneme's kernels"), flush=True)
                    self.assertEqual(found, golden(name))


if __name__ == "__main__":
    run_tests()
