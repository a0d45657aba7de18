"""mneme.weights() with a fake hub, and models whose low-rank adapters are merged."""
import os
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from mneme._weights import merged  # noqa: E402
from python_package import scenario  # noqa: E402
from torch.nn import functional  # noqa: E402


class LocalEntryNotFoundError(Exception):
    pass


class EntryNotFoundError(Exception):
    pass


class GatedRepoError(Exception):
    pass


def hub(answer):
    """A module huggingface_hub whose download returns the answer or raises it."""
    made = types.ModuleType("huggingface_hub")

    def download(repo_id, filename, revision):
        if isinstance(answer, Exception):
            raise answer
        return f"{answer}/{repo_id}/{revision}/{filename}"

    made.hf_hub_download = download
    return mock.patch.dict(sys.modules, {"huggingface_hub": made})


class Weights(unittest.TestCase):
    def test_the_path_of_a_file_is_returned(self):
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as file:
            self.assertEqual(mneme.weights(file.name), file.name)

    def test_a_repository_is_downloaded_by_the_hub(self):
        with hub("cache"):
            self.assertEqual(mneme.weights("timm/vit"), "cache/timm/vit/None/model.safetensors")
            self.assertEqual(mneme.weights("timm/vit", file="a.safetensors", revision="f00"),
                             "cache/timm/vit/f00/a.safetensors")

    def test_failed_downloads_say_what_was_expected(self):
        for error, kind, words in ((LocalEntryNotFoundError("offline"), ConnectionError, "machine with network"),
                                   (EntryNotFoundError("404"), FileNotFoundError, "with a safetensors file"),
                                   (GatedRepoError("403"), PermissionError, "hf auth login"),
                                   (KeyError("x"), RuntimeError, "KeyError")):
            with self.subTest(words), hub(error), self.assertRaisesRegex(kind, words):
                mneme.weights("timm/vit")
        with mock.patch.dict(sys.modules, {"huggingface_hub": None}):
            with self.assertRaisesRegex(ImportError, "pip install huggingface_hub"):
                mneme.weights("timm/vit")

    def test_other_names_are_refused(self):
        for name in ("vit.safetensors", "a/b.safetensors", "/a/b", "timm", "a/b/c"):
            with self.subTest(name), self.assertRaisesRegex(FileNotFoundError, "no such file.*expected a path"):
                mneme.weights(name)
        with self.assertRaisesRegex(ValueError, "expected a .safetensors file"):
            mneme.weights("timm/vit", file="pytorch_model.bin")


VIT = {"name": "vit", "patch": 4, "width": 12, "depth": 1, "heads": 2}
PARTS = {"low_rank": 2, "low_rank_alpha": 6.0, "low_rank_targets": ["query", "value", "mlp"]}


class Merged(unittest.TestCase):
    def test_a_merged_net_computes_what_its_parts_do(self):
        generator = torch.Generator().manual_seed(3)
        draw = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
        parts = {"b.qkv.weight": draw(9, 3), "b.value.lora_A.weight": draw(2, 3), "b.value.lora_B.weight": draw(3, 2),
                 "fc.weight": draw(5, 3), "fc.lora_A.weight": draw(1, 3), "fc.lora_B.weight": draw(5, 1)}
        x, whole = draw(4, 3), merged(parts, 0.5)
        self.assertEqual(set(whole), {"b.qkv.weight", "fc.weight"})
        added = 0.5 * functional.linear(functional.linear(x, parts["b.value.lora_A.weight"]),
                                        parts["b.value.lora_B.weight"])
        expected = functional.linear(x, parts["b.qkv.weight"]) + functional.pad(added, (6, 0))
        torch.testing.assert_close(functional.linear(x, whole["b.qkv.weight"]), expected)
        torch.testing.assert_close(whole["fc.weight"], parts["fc.weight"] + 0.5 * parts["fc.lora_B.weight"]
                                   @ parts["fc.lora_A.weight"])

    def test_a_run_with_merged_weights_starts_where_the_run_with_parts_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            chosen = scenario("fedavg", data={"shape": [1, 8, 8], "rows": 200}, model={**VIT, **PARTS},
                              rounds={"per_task": 1, "cohort": 2})
            del chosen["model"]["hidden"]
            run = mneme.run(chosen, out=os.path.join(folder, "parts"))
            whole = run.model(merge=True)
            self.assertFalse([name for name in whole if "lora" in name])
            self.assertTrue([name for name in run.model() if "lora" in name])
            file = os.path.join(folder, "whole.safetensors")
            from mneme._safetensors import as_bytes
            with open(file, "wb") as to:
                to.write(as_bytes(whole))
            plain = {**chosen, "model": {**VIT, "seed_weights": file},
                     "training": {**chosen["training"], "epochs": 0}}
            again = mneme.run(plain, out=os.path.join(folder, "whole"))
            self.assertAlmostEqual(again.summary["final_accuracy"], run.summary["final_accuracy"], delta=0.5)
            with self.assertRaisesRegex(ValueError, "no low-rank adapters; expected a run with model.low_rank"):
                again.model(merge=True)


if __name__ == "__main__":
    python_package.run_tests()
