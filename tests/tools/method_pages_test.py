"""docs/methods is up to date with tools/method_pages, and outdated pages are reported."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

TOOL = os.path.join(ROOT, "tools", "method_pages")


def loaded():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("method_pages", TOOL)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("method_pages", loader))
    loader.exec_module(module)
    module.said_by = lambda _program, *words: mneme(*words).stdout  # the fork server of mneme() starts faster
    return module


class MethodPages(unittest.TestCase):
    def test_pages_are_up_to_date(self):
        with unittest.mock.patch("sys.argv", [TOOL, "--check"]), contextlib.redirect_stdout(io.StringIO()) as said:
            code = loaded().main()
        self.assertEqual(code, 0, f"{said.getvalue()}run tools/method_pages")

    def test_a_page_has_the_method_its_keys_and_its_scenarios(self):
        tool = loaded()
        page = tool.page(PROGRAM, "fed-ewc", "sure", tool.sources()["fed-ewc"], tool.scenarios()["fed-ewc"])
        self.assertIn("\n```\nCE over the classes of the task + lambda / 2 sum_i F_i (w_i - w*_i)^2\n```\n", page)
        self.assertIn("| `fisher_max` | `1e-04` | number in [0, 1e12] | Upper bound", page)
        self.assertIn("`preset = \"official\"`", page)
        self.assertIn("- `scenarios/smoke/fed-ewc.toml`", page)

    def test_a_page_links_to_the_result_tables_of_its_scenarios(self):
        page = loaded().page(PROGRAM, "fil-ver", "sure", __file__, [("scenarios/small/fil_ver_s1_ver_stats.toml", "")])
        self.assertIn("- [FIL-VER on a third of EMNIST](../results/fil-ver.md#fil-ver-on-a-third-of-emnist)\n", page)

    def test_outdated_missing_and_surplus_pages_are_named(self):
        tool = loaded()
        with tempfile.TemporaryDirectory() as folder:
            tool.PAGES = folder
            wanted = tool.pages(PROGRAM)
            for name in ("stsa.md", "gone.md"):
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("# old\n")
            found = tool.on_disk()
        changed = {name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)}
        self.assertEqual(changed, wanted.keys() | {"gone.md"})


if __name__ == "__main__":
    run_tests()
