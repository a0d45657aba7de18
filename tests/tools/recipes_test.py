"""Recipes of other package managers (tools/packaging) name the version, the name and the dependencies of the build."""
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "tools", "packaging"))
import wheel_metadata  # noqa: E402

RECIPES = {"conda": "conda/recipe.yaml", "spack": "spack/package.py", "nix": "nix/flake.nix"}
# Names of the libraries of tools/cmake/dependencies.cmake in each recipe; CAF and torch are checked by version.
NAMES = {
    "Catch2": ("catch2", "catch2", "catch2_3"), "Eigen3": ("eigen", "eigen", "eigen"),
    "nlohmann_json": ("nlohmann_json", "nlohmann-json", "nlohmann_json"), "ZLIB": ("zlib", "zlib-api", "zlib"),
    "LibLZMA": ("liblzma-devel", "xz", "xz"), "JPEG": ("libjpeg-turbo", "libjpeg-turbo", "libjpeg"),
    "PNG": ("libpng", "libpng", "libpng"), "ICU": ("icu", "icu4c", "icu"), "OpenSSL": ("openssl", "openssl", "openssl"),
    "SQLite3": ("sqlite", "sqlite", "sqlite"), "mimalloc": ("mimalloc", "mimalloc", "mimalloc"),
    "TOMLPLUSPLUS": ("tomlplusplus", "tomlplusplus", "tomlplusplus"), "CLI11": ("cli11", "cli11", "cli11"),
    "EXPECTED": ("tl-expected", "tl-expected", "tl-expected"),
    "MICROHTTPD": ("libmicrohttpd", "libmicrohttpd", "libmicrohttpd"),
    "XXHASH": ("xxhash", "xxhash", "xxHash"),
}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


class Recipes(unittest.TestCase):
    def recipe(self, manager):
        return read("tools", "packaging", RECIPES[manager])

    def test_version_name_and_sources_are_those_of_the_build(self):
        caf = re.search(r"^caf_version=(\S+)\ncaf_sha256=(\S+)$", read("tools", "bootstrap"), re.M)
        for manager in RECIPES:
            text = self.recipe(manager)
            self.assertIn(f'"{wheel_metadata.mneme_version()}"', text, manager)
            self.assertRegex(text, "mneme-fcl|MnemeFcl", manager)
            for value in caf.groups():
                self.assertIn(value, text, manager)
        for manager in ("conda", "spack"):  # nixpkgs has one version of torch
            self.assertRegex(self.recipe(manager), rf"torch[ @]{wheel_metadata.default_torch()}\b")

    def test_every_library_of_the_build_is_a_dependency(self):
        text = read("tools", "cmake", "dependencies.cmake")
        asked = set(re.findall(r"find_package\((\w+)", text)) | set(re.findall(r"find_path\(([A-Z0-9]+)_", text))
        self.assertEqual(asked - {"Threads", "CAF", "TORCH"}, set(NAMES))
        for position, manager in enumerate(("conda", "spack", "nix")):
            for library, names in NAMES.items():
                name = rf'(^|[\s"]){names[position]}([\s"@]|$)'
                self.assertRegex(self.recipe(manager), name, f"{manager}: {library}")

    def test_every_place_has_the_distribution_name(self):
        self.assertIn('name = "mneme-fcl"', read("pyproject.toml"))
        self.assertIn("pypi:mneme-fcl", read("CITATION.cff"))
        self.assertIn("`mneme-fcl`", read("docs", "python.md"))

    def test_the_development_container_is_built_from_a_stage_of_the_dockerfile(self):
        folder = os.path.join(ROOT, "tools", "packaging", "devcontainer")
        build = json.loads(read("tools", "packaging", "devcontainer", "devcontainer.json"))["build"]
        dockerfile = os.path.normpath(os.path.join(folder, build["dockerfile"]))
        with open(dockerfile, encoding="utf-8") as file:
            self.assertRegex(file.read(), rf"(?m)^FROM \S+ AS {build['target']}$")
        self.assertEqual(os.path.normpath(os.path.join(folder, build["context"])), ROOT)

    def check(self, *command):
        """Runs a recipe's own tool if it is installed."""
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_nix_parses_its_recipe(self):
        self.check("nix-instantiate", "--parse", "tools/packaging/nix/flake.nix")

    def test_hadolint_finds_nothing_in_the_dockerfile(self):
        self.check("hadolint", "tools/packaging/Dockerfile")


if __name__ == "__main__":
    run_tests()
