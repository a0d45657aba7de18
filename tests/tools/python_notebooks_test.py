"""The notebooks of docs/notebooks run from the first cell to the last."""
import glob
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
from program import ROOT  # noqa: E402


class Notebooks(unittest.TestCase):
    def test_every_notebook_cell_runs(self):
        try:
            import nbclient
            import nbformat
        except ImportError as missing:
            self.skipTest(f"{missing.name} is not installed")
        if "arrays" not in str(mneme.schema()):
            self.skipTest("this program has no data of one's own")
        pages = sorted(glob.glob(os.path.join(ROOT, "docs", "notebooks", "*.ipynb")))
        self.assertEqual(len(pages), 2)
        for path in pages:
            with self.subTest(os.path.basename(path)), tempfile.TemporaryDirectory() as folder:
                page = nbformat.read(path, as_version=4)
                code = [cell.source for cell in page.cells if cell.cell_type == "code"]
                self.assertTrue(any("assert " in source for source in code), "the page asserts nothing that it shows")
                nbclient.NotebookClient(page, timeout=300, resources={"metadata": {"path": folder}}).execute()


if __name__ == "__main__":
    python_package.run_tests()
