"""tools/site: the documentation site is complete, its links hold, and its search finds terms of the field."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402


def is_installed():
    """True if the environment of tools/bootstrap --lint is installed; tools/site would install it."""
    with open(os.path.join(ROOT, "tools", "wheels", "lint.txt"), "rb") as file:
        name = subprocess.run(["cksum"], stdin=file, capture_output=True, text=True, check=True).stdout.split()[0]
    cache = os.environ.get("MNEME_DEPS", os.path.expanduser("~/.cache/mneme"))
    return os.path.exists(os.path.join(cache, "lint-" + name, "bin", "mkdocs"))


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not is_installed():
            raise unittest.SkipTest("mkdocs is not installed (tools/bootstrap --lint)")
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.site = os.path.join(folder.name, "html")
        cls.done = subprocess.run([os.path.join(ROOT, "tools", "site"), "--out", cls.site, "--program", PROGRAM],
                                  capture_output=True, text=True)

    def test_no_link_is_broken(self):
        self.assertEqual(self.done.returncode, 0, self.done.stdout + self.done.stderr)

    def read(self, *path):
        with open(os.path.join(self.site, *path), encoding="utf-8") as file:
            return file.read()

    def test_every_method_key_and_command_has_its_place(self):
        for page in glob.glob(os.path.join(ROOT, "docs", "methods", "*.md")):
            name = os.path.basename(page).removesuffix(".md").replace("README", "index")
            self.assertTrue(os.path.exists(os.path.join(self.site, "docs", "methods", name + ".html")), name)
        keys = self.read("reference", "scenario_keys.html")
        schema = json.loads(subprocess.run([PROGRAM, "schema"], capture_output=True, text=True, check=True).stdout)
        for section in ("worker", "rounds", "devices"):
            for key in schema["properties"][section]["properties"]:
                self.assertTrue(f"{section}.{key} =" in keys, key)
        self.assertTrue("mneme resume" in self.read("reference", "command_line.html"))

    def test_the_python_reference_has_types_and_docstrings(self):
        page = re.sub("<[^>]+>", "", self.read("reference", "python.html"))
        for text in ("ClientContext", "overrides: Keys = {}", "Runs a scenario in this process and returns its Run."):
            self.assertTrue(text in page, text)

    def test_the_search_index_finds_terms_of_the_field(self):
        index = self.read("search", "search_index.json").lower()
        for term in ("staleness", "resume", "lora"):
            self.assertTrue(term in index, term)

    def test_pages_load_nothing_from_other_hosts(self):
        remote = re.compile(r'<(?:script|link|img)[^>]+(?:src|href)="(https?://[^"]+)"')
        for page in ("index.html", os.path.join("reference", "python.html")):
            self.assertEqual(remote.findall(self.read(page)), [])


if __name__ == "__main__":
    run_tests()
