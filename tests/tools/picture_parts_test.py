"""Files of OSI-FL's image generator through the program: each file that does not fit gives one error.

The files are derived from those of scenarios/smoke/parts.
"""
import json
import os
import shutil
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests  # noqa: E402

SCENARIO = os.path.join(ROOT, "scenarios", "smoke", "osi-fl-parts.toml")
PARTS = os.path.join(ROOT, "scenarios", "smoke", "parts")
KEYS = {"caption_encoder": "caption_encoder.pt2", "caption_decoder": "caption_decoder.pt2",
        "caption_words": "caption_words.json", "text_encoder": "text_states.pt2", "text_tokens": "text_tokens.json",
        "text_merges": "text_merges.txt", "denoiser": "denoiser.pt2", "picture_decoder": "decoder.pt2"}


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.parts = os.path.join(self.folder, "parts")
        shutil.copytree(PARTS, self.parts)

    def validated(self, *lines, files=None):
        """Returns (exit code, stderr) of `mneme validate` for the smoke scenario with these files and lines."""
        path = os.path.join(self.folder, "scenario.toml")
        named = {**KEYS, **(files or {})}
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'extends = "{SCENARIO}"\n[strategy]\n')
            file.writelines(f'{key} = "{name and "parts/" + name}"\n' for key, name in named.items())
            file.writelines(line + "\n" for line in lines)
        result = mneme("validate", path)
        return result.returncode, result.stderr

    def refused(self, key, words, *lines, files=None, errors=1):
        code, said = self.validated(*lines, files=files)
        self.assertEqual(code, 2, said)
        self.assertEqual(said.count("error:"), errors, said)
        self.assertIn(words, said)
        self.assertIn("scenario.toml", said)
        if key in (files or {}) or key in KEYS:
            line = 3 + list({**KEYS, **(files or {})}).index(key)
            self.assertIn(f"scenario.toml:{line}:", said)

    def rewrite(self, name, change):
        """Rewrites the module: change(name, content) returns the new content of an entry, or None to remove it."""
        path = os.path.join(self.parts, name)
        with zipfile.ZipFile(path) as archive:
            content = {entry.filename: archive.read(entry) for entry in archive.infolist()}
        with zipfile.ZipFile(path, "w") as archive:
            for entry, value in content.items():
                made = change(entry, value)
                if made is not None:
                    archive.writestr(zipfile.ZipInfo(entry), made)

    def test_valid_parts_run(self):
        self.assertEqual(self.validated()[0], 0)

    def test_the_small_generator_learns_from_captions(self):
        digests = set()
        for threads in ("1", "3"):
            out = os.path.join(self.folder, "run" + threads)
            values = {"condition": '"embed512"', "condition_shape": "[1, 24]", "denoiser": '""',
                      "picture_decoder": '""', "text_encoder": json.dumps(os.path.join(PARTS, "text_encoder.pt2")),
                      "component_passes": "3",
                      "denoiser_passes": "3"}
            settings = [word for key, value in values.items() for word in ("--set", f"strategy.{key}={value}")]
            result = mneme("run", SCENARIO, "--threads", threads, "--quiet", "--out", out, *settings)
            self.assertEqual(result.returncode, 0, result.stderr)
            with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
                summary = json.load(file)
            self.assertEqual(summary["paper_params"], 5 * 24)  # 24 numbers for each of five classes
            digests.add(summary["run_digest"])
        self.assertEqual(len(digests), 1)

    def test_a_module_of_another_libtorch_is_refused(self):
        self.rewrite("denoiser.pt2", lambda name, value: value.replace(b"aten.silu.", b"aten.silu_of_tomorrow.")
                     if name.endswith(".json") else value)
        self.refused("denoiser", "silu_of_tomorrow")

    def test_a_missing_tensor_is_refused(self):
        self.rewrite("text_states.pt2", lambda name, value: None if name.endswith("/weights/weight_3") else value)
        self.refused("text_encoder", "text_states.pt2")

    def test_a_module_without_a_declaration_of_its_rows_is_refused(self):
        shutil.copy(os.path.join(ROOT, "scenarios", "smoke", "tiny.pt2"), os.path.join(self.parts, "decoder.pt2"))
        self.refused("picture_decoder", "the module does not declare the shape of its rows")

    def test_a_condition_that_the_modules_lack_is_refused(self):
        self.refused("text_encoder", "the module returns 192 numbers for a text; the condition has 77 x 768 = 59136",
                     "condition_shape = []", errors=3)  # its tokens and the denoiser's rows do not fit, either
        self.refused("text_encoder", "the module returns 24 numbers for a text", files={"text_encoder":
                                                                                        "text_encoder.pt2"})
        self.refused("denoiser", "expected the [4, 4, 4] latents of picture_decoder",
                     files={"denoiser": "text_states.pt2"}, errors=2)
        self.refused("", "expected two numbers", "condition_shape = [12, 16, 1]")
        result = mneme("run", os.path.join(ROOT, "scenarios", "smoke", "osi-fl.toml"), "--set",
                       "strategy.condition_shape=[1, 24]")
        self.assertEqual(result.returncode, 2)
        self.assertIn("no effect without the modules of a captioner", result.stderr)

    def test_swapped_modules_are_refused(self):
        self.refused("caption_decoder", "expected 1 + words of a caption (16) + the 80 that caption_encoder returns",
                     files={"caption_decoder": "text_states.pt2"}, errors=2)
        self.refused("caption_encoder", "expected square images [3, S, S]", files={"caption_encoder": "decoder.pt2"},
                     errors=2)

    def test_missing_vocabularies_are_refused(self):
        for key in ("caption_words", "text_tokens", "text_merges"):
            os.rename(os.path.join(self.parts, KEYS[key]), os.path.join(self.folder, "kept"))
            self.refused(key, KEYS[key])
            os.rename(os.path.join(self.folder, "kept"), os.path.join(self.parts, KEYS[key]))
            self.refused("", f"no {key}; expected a file that tools/research/export/picture_parts.py has written",
                         files={key: ""})

    def test_vocabularies_that_do_not_fit_are_refused(self):
        with open(os.path.join(self.parts, "text_merges.txt"), "a", encoding="utf-8") as file:
            file.write("q z\n")
        self.refused("text_merges", "text_merges.txt: line 25: 'qz' is not a token of the vocabulary")
        shutil.copy(os.path.join(PARTS, "text_merges.txt"), self.parts)
        with open(os.path.join(self.parts, "text_tokens.json"), "w", encoding="utf-8") as file:
            file.write('{"a": 0, "b": 5}')
        self.refused("text_tokens", "entry 2: number 5 of 'b' is too large")
        shutil.copy(os.path.join(PARTS, "text_tokens.json"), self.parts)
        words = os.path.join(self.parts, "caption_words.json")
        with open(words, encoding="utf-8") as file:
            kept = json.load(file)
        with open(words, "w", encoding="utf-8") as file:
            json.dump({**kept, "more": len(kept)}, file)
        self.refused("caption_words", "the vocabulary has 42 words, but caption_decoder scores 41")

    def test_unused_part_files_give_a_warning(self):
        self.refused("denoiser", "no effect with condition = \"embed512\"", 'condition = "embed512"', errors=2)
        self.refused("", "beams = 23; expected at most half of the 41 words", "beams = 23")


if __name__ == "__main__":
    run_tests()
