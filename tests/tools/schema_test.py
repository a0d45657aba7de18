"""mneme schema: it accepts every scenario of the tree, and rejects what a schema can know to be wrong."""
import glob
import json
import os
import re
import sys
import unittest

try:
    import tomllib
except ImportError:  # before Python 3.11
    tomllib = None

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme, run_tests  # noqa: E402

TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def findings(value, schema, at=""):
    """What is wrong with the value: the words of JSON schema (draft 7) that mneme uses, each as its text defines it."""
    if "type" in schema and not is_type(value, schema["type"]):
        return [f"{at}: no {schema['type']}"]
    found = []
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{at}: none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{at}: not {schema['const']}")
    if is_type(value, "number"):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value) or \
                "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
            found.append(f"{at}: out of range")
    if isinstance(value, str):
        if not re.search(schema.get("pattern", ""), value) or len(value) < schema.get("minLength", 0):
            found.append(f"{at}: not like {schema.get('pattern')}")
    if isinstance(value, list) and "items" in schema:
        for index, element in enumerate(value):
            found += findings(element, schema["items"], f"{at}[{index}]")
    if isinstance(value, dict):
        found += of_object(value, schema, at)
    if "anyOf" in schema and all(findings(value, choice, at) for choice in schema["anyOf"]):
        found.append(f"{at}: none of the forms")
    for part in schema.get("allOf", []):
        found += findings(value, part, at)
    if "if" in schema and not findings(value, schema["if"], at):
        found += findings(value, schema.get("then", {}), at)
    return found


def of_object(value, schema, at):
    found = [f"{at}: lacks {name}" for name in schema.get("required", []) if name not in value]
    known = schema.get("properties", {})
    for name, member in value.items():
        if name in known:
            found += findings(member, known[name], f"{at}.{name}")
        elif schema.get("additionalProperties", True) is False:
            found.append(f"{at}: unknown {name}")
        if "propertyNames" in schema:
            found += findings(name, schema["propertyNames"], at)
    return found


@unittest.skipIf(tomllib is None, "needs tomllib of Python 3.11")
class SchemaTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.schema = json.loads(mneme("schema").stdout)

    def test_it_accepts_every_scenario_of_the_tree(self):
        files = glob.glob(os.path.join(ROOT, "scenarios", "**", "*.toml"), recursive=True)
        self.assertGreater(len(files), 50)
        for path in files:
            with open(path, "rb") as file:
                read = tomllib.load(file)
            if "sweep" in read:  # a grid of scenarios, which is none itself
                continue
            with self.subTest(path=os.path.relpath(path, ROOT)):
                self.assertEqual(findings(read, self.schema), [])

    def test_it_rejects_what_a_schema_can_express(self):
        for text in ['seed = "one"', "seed = -1", "sed = 1", "[rouns]\ncohort = 3", "[rounds]\nchort = 3",
                     "[rounds]\ncohort = 3.5", '[rounds]\ndeadline = 30', '[rounds]\ndeadline = "30 parsecs"',
                     '[rounds]\nmode = "sink"', "[partition]\nbeta = 0.0", "[devices]\ndropout = 1.5",
                     "[devices]\nrows_per_second = { sigma = 1.0 }", "[devices]\nrows_per_second = [1.0, \"x\"]",
                     '[tasks]\nclass_order = "alphabetical"', "[tasks]\nclass_order = [1, -2]",
                     '[strategy]\nname = "fedprocks"', '[strategy]\nname = "fedavg"\nmu = 0.1', "[strategy]\nmuu = 0.1",
                     '[strategy]\nname = "fedprox"\nmu = "0.1"', '[model]\nname = "linear"\nhidden = [3]',
                     '[model]\nname = "mlp"\nhidden = 3', "extends = 3", "rounds = 3", "[clients]\nmemory_limit = 3",
                     "[evaluation]\ntargets = [101.0]", "[checkpoint]\nforce = 1"]:
            with self.subTest(text=text):
                self.assertNotEqual(findings(tomllib.loads(text), self.schema), [])

    def test_it_accepts_what_another_file_completes(self):
        for text in ["[strategy]\nmu = 0.1", "[model]\nhidden = [3]", 'extends = ["a.toml", "b.toml"]',
                     "[devices]\nrows_per_second = { median = 3, sigma = 1 }", '[rounds]\ndeadline = "1.5 min"']:
            with self.subTest(text=text):
                self.assertEqual(findings(tomllib.loads(text), self.schema), [])


if __name__ == "__main__":
    run_tests()
