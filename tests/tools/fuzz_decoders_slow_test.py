"""Ten minutes of libFuzzer for each group of decoders, with the address and the undefined behavior sanitizer. Skipped
without clang. MNEME_FUZZ_SECONDS sets another time."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

RUN = os.path.join(ROOT, "tools", "fuzz", "decoders", "run")


def has_libfuzzer():
    if not shutil.which("clang++"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "f.cpp")
        with open(source, "w", encoding="utf-8") as file:
            file.write('extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n')
        return subprocess.run(["clang++", "-fsanitize=fuzzer,address,undefined", source, "-o", source + ".out"],
                              capture_output=True, check=False).returncode == 0


@unittest.skipUnless(has_libfuzzer(), "no clang++ with libFuzzer (tools/bootstrap --lint brings it)")
class Decoders(unittest.TestCase):
    def test_no_input_crashes_a_decoder(self):
        seconds = os.environ.get("MNEME_FUZZ_SECONDS", "600")
        done = subprocess.run([sys.executable, RUN, "--seconds", seconds, "--program", PROGRAM], capture_output=True,
                              text=True, check=False)
        print(done.stdout, flush=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    run_tests()
