"""One minute of tools/fuzz, and checks that its searches find planted faults."""
import functools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, needs_nodes, run_tests  # noqa: E402

sys.path[:0] = [os.path.join(ROOT, "tools", "fuzz"), os.path.join(ROOT, "tools", "fuzz", "decoders")]
import seeds  # noqa: E402
from checkpoint_bytes import with_checksum  # noqa: E402
from key_tables import KeyTables  # noqa: E402
from mutations import mutated  # noqa: E402
from reader_cases import CASES  # noqa: E402
from node_streams import DamagedMessage, MessageReader, framed  # noqa: E402
from scenario_draws import NEVER_DRAWN, WITH_FILES, drawn_scenario, drawn_value  # noqa: E402
from started_programs import StartedPrograms  # noqa: E402
from ways_to_run import Way  # noqa: E402

FUZZ = os.path.join(ROOT, "tools", "fuzz", "run")
# A fake reader that is killed by a signal for files of odd length.
FRAGILE = """#!/bin/sh
[ "$1" = validate ] && shift || exit 0
for file in "$@"; do
  [ $(($(wc -c <"$(dirname "$file")/p.csv") % 2)) = 0 ] || kill -SEGV $$
done
exit 0
"""
# A fake reader that prints nothing for files of odd length, and accepts the others.
SILENT = """#!/bin/sh
[ "$1" = validate ] && shift || exit 0
code=0
for file in "$@"; do
  [ $(($(wc -c <"$(dirname "$file")/p.csv") % 2)) = 0 ] && echo "$file: ok" || code=2
done
exit $code
"""


@functools.lru_cache(maxsize=None)
def key_tables():
    """Key tables of the program, which is called once per topic."""
    return KeyTables(PROGRAM)


class Fuzz(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-fuzz-test-")
        self.addCleanup(shutil.rmtree, self.folder)

    def search(self, *arguments, program=PROGRAM):
        return subprocess.run([sys.executable, FUZZ, *arguments, "--program", program, "--into", self.folder],
                              capture_output=True, text=True, timeout=900)

    def script(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, 0o755)
        return path

    def test_random_scenarios_have_equal_results_in_all_ways_to_run(self):
        needs_nodes()
        done = self.search("scenarios", "--count", "3", "--seed", "100", "--seconds", "10")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"[1-3] drawn, \d refused, \d done, \d failed alike, 0 found")

    def test_damaged_files_of_every_kind_are_refused_with_a_reason(self):
        done = self.search("readers", "--count", "2", "--seconds", "600")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("peak memory in parts of the honest input's: toml 1.", done.stdout)
        for reader in ("toml", "safetensors", "idx", "gz", "xz", "cifar", "pacs", "jpeg", "partition", "availability",
                       "torn_checkpoint", "forged_checkpoint"):
            self.assertIn(f"2 {reader}", done.stdout)

    def test_changed_programs_are_accepted_or_refused_with_a_reason(self):
        done = self.search("modules", "--count", "8", "--seconds", "60")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"8 modules, \d taken, \d refused, 0 found")

    def test_failed_writes_leave_a_run_that_can_be_resumed(self):
        if not (shutil.which("cc") or shutil.which("gcc")):
            self.skipTest("no C compiler")
        done = self.search("faults", "--count", "6", "--seconds", "8")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"[1-6] disturbed, \d went on, \d resumed, \d refused, 0 found")

    def test_a_reader_killed_by_a_signal_is_found(self):
        done = self.search("readers", "--count", "5", "--only", "partition",
                           program=self.script("fragile", FRAGILE))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("it ended with code -11", done.stdout)
        self.assertRegex(done.stdout, r"partition, seed \d: ")
        self.assertNotIn("together", done.stdout)

    def test_a_reader_without_a_reason_for_one_of_many_inputs_is_found(self):
        done = self.search("readers", "--count", "20", "--only", "partition", program=self.script("silent", SILENT))
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("gave no reason", done.stdout)

    def test_a_new_key_is_drawn_without_changing_the_search(self):
        for asked, said in key_tables().said.items():
            self.script(asked, said)
        program = self.script("newer", f"""#!/bin/sh
cat '{self.folder}'/"$*"
[ "$*" != "help training" ] || printf '  shiny = 3\\n      integer in [2, 4]. New.\\n'
""")
        tables = KeyTables(program)
        shiny = {setting[2] for seed in range(200) for setting in drawn_scenario(tables, seed).settings
                 if setting[1] == "shiny"}
        self.assertEqual(shiny, {"2", "3", "4"})

    def test_every_method_source_and_key_is_drawn(self):
        tables, draw = key_tables(), random.Random(1)
        drawn = [dict(((section + "." + key), value) for section, key, value in drawn_scenario(tables, seed).settings)
                 for seed in range(1000)]
        self.assertEqual({scenario["strategy.name"].strip('"') for scenario in drawn}, set(tables.methods))
        self.assertGreaterEqual({scenario["data.name"] for scenario in drawn},
                                {'"synthetic"', '"arrays"', '"csv"', '"folder"'})
        given = {name for scenario in drawn for name in scenario}
        self.assertEqual(WITH_FILES - given, set())
        by_kind = {key.full_name for key in tables.all() if key.full_name not in WITH_FILES | NEVER_DRAWN}
        self.assertEqual({key.full_name for key in tables.all() if key.full_name in by_kind
                          and all(drawn_value(key, draw) is None for _ in range(20))}, set())

    def test_draws_and_damage_depend_only_on_their_seeds(self):
        tables = key_tables()
        self.assertEqual(drawn_scenario(tables, 7).text(), drawn_scenario(tables, 7).text())
        self.assertNotEqual(drawn_scenario(tables, 7).text(), drawn_scenario(tables, 8).text())
        honest = json.dumps(list(range(500))).encode()
        self.assertEqual(mutated(honest, random.Random(3)), mutated(honest, random.Random(3)))
        self.assertTrue(any(mutated(honest, random.Random(seed)) != honest for seed in range(5)))

    def test_messages_survive_reading_from_frames_and_framing(self):
        messages = [b"a", bytes(range(256)) * 2000, b"bc"]
        stream = b"mneme\n\x01\x00" + b"".join(map(framed, messages))
        for piece in (1000, 7001, len(stream)):
            reader, found = MessageReader(), []
            for first in range(0, len(stream), piece):
                found += reader.feed(stream[first:first + piece])
            self.assertEqual(found, messages)

    def test_one_message_of_a_stream_is_damaged_and_others_are_forwarded(self):
        stream = b"mneme\n\x01\x00" + b"".join(map(framed, [b"one", b"two", b"three"]))
        damage = DamagedMessage(1, lambda message: message + b"!")
        passed = b"".join(damage(0, stream[at:at + 5]) for at in range(0, len(stream), 5))
        self.assertEqual(MessageReader().feed(passed), [b"one", b"two!", b"three"])

    def test_a_program_is_started_repeatedly(self):
        programs = StartedPrograms(PROGRAM, self.folder, 60)
        self.addCleanup(programs.close)
        self.assertEqual(programs.run(["list", "strategies"]).code, 0)
        refused = programs.run(["validate", os.path.join(self.folder, "absent.toml")])
        self.assertEqual(refused.code, 2)
        self.assertIn("absent.toml", refused.errors)
        self.assertGreater(refused.peak_bytes, 1 << 20)
        self.assertEqual(programs.run(["list", "models"]).code, 0)

    def test_several_commands_run_in_sequence_and_continue_after_a_failure(self):
        programs = StartedPrograms(PROGRAM, self.folder, 60)
        self.addCleanup(programs.close)
        self.assertEqual(programs.prepare(["list", "strategies"]).code, 0)
        absent = [["validate", os.path.join(self.folder, f"{name}.toml")] for name in "ab"]
        done = programs.run_several([absent[0], ["list", "models"], absent[1]])
        self.assertEqual([outcome.code for outcome in done], [2, 0, 2])
        self.assertIn("a.toml", done[0].errors)
        self.assertIn("b.toml", done[2].errors)
        self.assertGreater(min(outcome.peak_bytes for outcome in done), 1 << 20)
        self.assertEqual(programs.run(["list", "models"]).errors, done[1].errors)

    def test_one_of_several_commands_killed_by_a_signal_is_found(self):
        killing = self.script("killing", '#!/bin/sh\n[ "$1" = dies ] && kill -SEGV $$\nexit 0\n')
        programs = StartedPrograms(killing, self.folder, 60)
        self.addCleanup(programs.close)
        self.assertEqual([outcome.code for outcome in programs.run_several([["lives"], ["dies"], ["lives"]])],
                         [0, -signal.SIGSEGV, 0])

    def test_a_program_that_exceeds_its_time_is_terminated(self):
        programs = StartedPrograms(self.script("sleeper", "#!/bin/sh\nexec sleep 100\n"), self.folder, 0.5)
        self.addCleanup(programs.close)
        self.assertEqual(programs.run(["now"]).code, -signal.SIGTERM)
        self.assertEqual(programs.run(["now"], limit_s=0.1, ended_by=signal.SIGKILL).code, -signal.SIGKILL)

    def test_each_start_has_its_own_environment(self):
        said = '#!/bin/sh\necho "$1 $LEVEL, $SIGN" >&2\n'
        programs = StartedPrograms(self.script("says", said), self.folder, 60)
        self.addCleanup(programs.close)
        self.assertEqual(programs.run(["now"], ["LEVEL=3", "SIGN=a=b"]).errors, "now 3, a=b\n")
        self.assertEqual(programs.run(["then"], ["SIGN="]).errors, "then , \n")

    def test_a_run_that_ends_before_its_kill_is_not_rerun(self):
        failing = self.script("failing", f"#!/bin/sh\necho run >>'{self.folder}/runs'\necho error: no >&2\nexit 1\n")
        programs = StartedPrograms(failing, self.folder, 60)
        self.addCleanup(programs.close)
        ended = Way(1, kills=3, seed=1).run(programs, "s.toml", os.path.join(self.folder, "run"), 100.0)
        self.assertEqual((ended.code, ended.errors), (1, "error: no\n"))
        with open(os.path.join(self.folder, "runs"), encoding="utf-8") as file:
            self.assertEqual(file.read(), "run\n")

    def test_a_changed_result_after_a_torn_checkpoint_is_found(self):
        case = CASES["torn_checkpoint"](os.path.join(self.folder, "torn"), PROGRAM)
        ended = StartedPrograms(PROGRAM, self.folder, 60)
        self.addCleanup(ended.close)
        self.assertEqual(ended.run(case.command(case.honest[:-3])).code, 0)
        self.assertIsNone(case.wrong_result())
        case.digest = "another"
        self.assertRegex(case.wrong_result(), "code 0, but digest [0-9a-f]{32} and not another")

    def test_a_forged_checkpoint_has_a_valid_checksum(self):
        out = os.path.join(self.folder, "run")
        subprocess.run([PROGRAM, "run", os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), "--quiet", "--out",
                        out, "--set", "checkpoint.force=true"], check=True)
        folder = os.path.join(out, "checkpoint")
        newest = max(name for name in os.listdir(folder) if name.endswith(".checkpoint"))
        with open(os.path.join(folder, newest), "rb") as file:
            honest = file.read()
        self.assertEqual(with_checksum(honest), honest)

    def test_every_reader_has_a_decoder_or_is_fuzzed_by_the_program(self):
        sources = os.path.join(ROOT, "tools", "fuzz", "decoders")
        text = ""
        for name in sorted(os.listdir(sources)):
            if name.endswith(".cpp"):
                with open(os.path.join(sources, name), encoding="utf-8") as file:
                    text += file.read()
        decoders = set(re.findall(r'{"[a-z]+", "([a-z_]+)", [a-z]', text))
        played = {name for names in seeds.OF_CASES.values() for name in names}
        self.assertEqual(played | seeds.BY_PROGRAM_ONLY, set(CASES))
        self.assertEqual(set(seeds.OF_CASES) - decoders, set())
        self.assertIn("messages", decoders)


if __name__ == "__main__":
    run_tests()
