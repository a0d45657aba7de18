"""mneme schema accepts every scenario of the tree, and rejects errors that a schema can detect."""
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


# Broken scenarios of the tests whose errors a schema cannot detect, since they depend on several keys, on files, on the
# range of a number, or on the machine.
BEYOND_A_SCHEMA = (
    "a module that is not there; tokens in images, under transforms that move pixels; images in another size, under "
    "transforms that move pixels; public rows beside a partition file; more clients in flight than there are; a "
    "server that waits for uploads that never come; nobody stays; a day too short; availability without its file; an "
    "availability file that is not there; a seed beyond 64 bits; a number too small for float32; more shards than a "
    "list holds; a number that is none; an infinite number; a duration beyond the clock; a duration below the clock; "
    "a list of devices of another length; a class order with a class twice; a class order with a gap; an empty class "
    "order; a class order too short for made data; an order of 100 classes for 10; more tasks than classes; fewer "
    "classes than tasks after the first task; a first task with all classes; sizes that do not add up; sizes of more "
    "classes than there are; more sizes than tasks; sizes beside a larger first task; more classes than there are; a "
    "transform of classes; domains without a transform; class blocks without their size; class blocks of more classes "
    "than there are; a shape of two numbers; a cohort of more than everybody; a table without rows; a table row of "
    "another length; a table with an unknown letter; a table that begins with an end; a table in which somebody "
    "returns; a table in which somebody goes and comes, twice; a table in which somebody is forgotten; a table in "
    "which somebody never was; a table that does not divide the clients; a population that outgrows itself; a growing "
    "population that starts too large; milestones that do not ascend; steps without milestones; a partition file not "
    "named; a partition file that is not there; a data folder that is a file; a device that does not exist; a device "
    "without number"
).split("; ")


def names_within(schema):
    """Names of all properties at any depth."""
    parts = schema.items() if isinstance(schema, dict) else enumerate(schema) if isinstance(schema, list) else []
    return {name for key, part in parts for name in (set(part) if key == "properties" else set()) | names_within(part)}


def is_type(value, name):
    return isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))


def findings(value, schema, at=""):
    """Errors of a value: implements the keywords of JSON schema (draft 7) that mneme uses."""
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

    def test_the_schema_accepts_every_scenario_of_the_tree(self):
        files = glob.glob(os.path.join(ROOT, "scenarios", "**", "*.toml"), recursive=True)
        self.assertGreater(len(files), 50)
        for path in files:
            with open(path, "rb") as file:
                read = tomllib.load(file)
            if os.path.basename(os.path.dirname(path)) == "devices":  # a profile, not a scenario
                continue
            if "sweep" in read:  # a grid, not a scenario
                continue
            with self.subTest(path=os.path.relpath(path, ROOT)):
                self.assertEqual(findings(read, self.schema), [])

    def test_the_schema_rejects_errors_that_a_schema_can_express(self):
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

    def test_the_schema_rejects_broken_scenarios_except_those_listed(self):
        with open(os.path.join(ROOT, "tests", "runtime", "scenario", "broken_scenarios.txt"), encoding="utf-8") as file:
            cases = re.split(r"^=== ", file.read(), flags=re.M)[1:]
        accepted, rejected = set(), 0
        for case in cases:
            name, text = case.split("\n", 1)
            if "probe" in case:  # a method or net of that test only
                continue
            try:
                wrong = findings(tomllib.loads(text.split("---\n")[0]), self.schema)
            except tomllib.TOMLDecodeError:
                wrong = ["no TOML"]
            rejected += bool(wrong)
            if not wrong:
                accepted.add(name)
        self.assertGreater(rejected, 50)
        self.assertEqual(accepted - set(BEYOND_A_SCHEMA), set(), "a finding that depends on more than one value is "
                                                                 "listed in BEYOND_A_SCHEMA")

    def test_key_names_in_the_sources_exist(self):
        """Errors are reported at the key that they name; an unknown key would have no location."""
        sections = {name: keys for name, keys in self.schema["properties"].items() if name != "extends"}
        keys = {f"{name}.{key}" for name, section in sections.items() for key in names_within(section)}
        pattern = rf'\{{"((?:{"|".join(sections)})\.[a-z_0-9]+)"'  # {"model.name", ..}, as diagnostics are written
        named = set()
        for part in ("actors", "runtime", "strategies"):
            for path in glob.glob(os.path.join(ROOT, part, "**", "*.[ch]pp"), recursive=True):
                with open(path, encoding="utf-8") as file:
                    named |= set(re.findall(pattern, file.read()))
        self.assertGreater(len(named), 50)
        self.assertEqual(named - keys - {"data.pkl", "model.safetensors", "worker.node_answer"}, set())

    def test_the_schema_accepts_files_that_extend_others(self):
        for text in ["[strategy]\nmu = 0.1", "[model]\nhidden = [3]", 'extends = ["a.toml", "b.toml"]',
                     "[devices]\nrows_per_second = { median = 3, sigma = 1 }", '[rounds]\ndeadline = "1.5 min"']:
            with self.subTest(text=text):
                self.assertEqual(findings(tomllib.loads(text), self.schema), [])


if __name__ == "__main__":
    run_tests()
