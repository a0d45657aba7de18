"""A method's source is everything that it refers to: a different value anywhere gives another digest; other formatting,
locations or processes do not."""
import concurrent.futures
import importlib
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import python_methods as methods  # noqa: E402
from forked_program import FORKS  # noqa: E402
from mneme._code import methods_of  # noqa: E402
from mneme._source import digest_of_source  # noqa: E402
from python_package import scenario  # noqa: E402

METHOD = """
class M(mneme.Method):
    name = "py-m"

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train()
        return mneme.Upload(trained.weights, rows=trained.rows), {uses}
"""
# two versions of the method's module that differ in one respect; {N} stands for 1 or 2
DIFFER = {
    "a number": ("USED", "USED = {N}"),
    "a float": ("USED", "USED = {N} / 3"),
    "a text": ("USED", "USED = 'x{N}'"),
    "a tuple": ("USED", "USED = (1, ('a', {N}))"),
    "a list in a dict": ("USED", "USED = {{'a': [1, {N}]}}"),
    "a key of a dict": ("USED", "USED = {{{N}: 1}}"),
    "a set": ("USED", "USED = {{'a', 'b', {N}}}"),
    "bytes": ("USED", "USED = b'x{N}'"),
    "an array": ("USED", "import numpy\nUSED = numpy.arange(3) * {N}"),
    "the type of an array": ("USED", "import numpy\nUSED = numpy.arange(3, dtype='int{N}6'.replace('26', '32'))"),
    "an array of objects": ("USED", "import numpy\nUSED = numpy.array([{N}, 'a', None], dtype=object)"),
    "a tensor": ("USED", "import torch\nUSED = torch.arange(3) * {N}"),
    "a transposed tensor": ("USED", "import torch\nUSED = torch.arange(6).reshape(2, 3).t() * {N}"),
    "a function": ("used()", "def used():\n    return {N}"),
    "a function of a function": ("used()", "def inner():\n    return {N}\ndef used():\n    return inner()"),
    "functions that call each other": (
        "used(0)", "def used(n):\n    return other(n)\ndef other(n):\n    return used(n - 1) if n else {N}"),
    "a constant of a function": ("used()", "RATE = {N}\ndef used():\n    return RATE"),
    "a default argument": ("used()", "def used(x={N}):\n    return x"),
    "a default by name": ("used()", "def used(*, x={N}):\n    return x"),
    "a lambda": ("used(1)", "used = lambda x: x + {N}"),
    "a second lambda in a line": ("used[1](1)", "used = (lambda x: x, lambda x: x + {N})"),
    "equal lambdas in a line": ("used[1](1)", "used = (lambda x: x, lambda x: x, {N})"),
    "a closure": ("used()", "def made(n):\n    def inner():\n        return n\n    return inner\nused = made({N})"),
    "a partial": ("used()", "import functools\ndef of(n):\n    return n\nused = functools.partial(of, {N})"),
    "a decorator of the user": (
        "used()", "def twice(f):\n    def inner():\n        return f() * {N}\n    return inner\n@twice\ndef used():\n"
        "    return 1"),
    "what a decorator wraps": (
        "used()", "def twice(f):\n    def inner():\n        return f() * 2\n    return inner\n@twice\ndef used():\n"
        "    return {N}"),
    "a decorator's argument": (
        "used()", "def times(n):\n    def outer(f):\n        return lambda: f() * n\n    return outer\n@times({N})\n"
        "def used():\n    return 1"),
    "functools.wraps": (
        "used()", "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def inner():\n        return f() * 2\n"
        "    return inner\n@twice\ndef used():\n    return {N}"),
    "functools.lru_cache": ("used()", "import functools\n@functools.lru_cache\ndef used():\n    return {N}"),
    "functools.singledispatch": (
        "used(1)", "import functools\n@functools.singledispatch\ndef used(x):\n    return 1\n@used.register\n"
        "def _(x: int):\n    return {N}"),
    "torch.no_grad": ("used()", "import torch\n@torch.no_grad()\ndef used():\n    return {N}"),
    "contextlib.contextmanager": (
        "used()", "import contextlib\n@contextlib.contextmanager\ndef used():\n    yield {N}"),
    "a class": ("Used().go()", "class Used:\n    def go(self):\n        return {N}"),
    "an attribute of a class": ("Used.rate", "class Used:\n    rate = {N}"),
    "a base of a class": ("Used()", "class Base:\n    rate = {N}\nclass Used(Base):\n    pass"),
    "a property": ("Used().go", "class Used:\n    @property\n    def go(self):\n        return {N}"),
    "a static method": ("Used.go()", "class Used:\n    @staticmethod\n    def go():\n        return {N}"),
    "a class method": ("Used.go()", "class Used:\n    @classmethod\n    def go(cls):\n        return {N}"),
    "a cached property": (
        "Used().go", "import functools\nclass Used:\n    @functools.cached_property\n    def go(self):\n"
        "        return {N}"),
    "a class within a class": ("Used.Inner.rate", "class Used:\n    class Inner:\n        rate = {N}"),
    "a metaclass": ("Used", "class Meta(type):\n    rate = {N}\nclass Used(metaclass=Meta):\n    pass"),
    "an object": ("used.x", "class Used:\n    def __init__(self, x):\n        self.x = x\nused = Used({N})"),
    "an object with slots": (
        "used.x", "class Used:\n    __slots__ = ('x',)\n    def __init__(self, x):\n        self.x = x\n"
        "used = Used({N})"),
    "a method of an object": (
        "go()", "class Used:\n    def __init__(self, x):\n        self.x = x\n    def go(self):\n"
        "        return self.x\n"
        "go = Used({N}).go"),
    "an object that can be called": (
        "used()", "class Used:\n    def __call__(self):\n        return {N}\nused = Used()"),
    "a dataclass": (
        "Used().x", "import dataclasses\n@dataclasses.dataclass\nclass Used:\n    x: int = {N}"),
    "a namedtuple": ("used.x", "import collections\nUsed = collections.namedtuple('Used', 'x')\nused = Used({N})"),
    "a NamedTuple's default": ("Used().x", "import typing\nclass Used(typing.NamedTuple):\n    x: int = {N}"),
    "an enum": ("Used.A", "import enum\nclass Used(enum.Enum):\n    A = {N}"),
    "an object of a library": ("used", "import fractions\nused = fractions.Fraction({N}, 3)"),
    "a pattern": ("used", "import re\nused = re.compile('a{N}')"),
    "numpy.vectorize": ("used(1)", "import numpy\nused = numpy.vectorize(lambda x: x + {N})"),
    "torch.func.grad": ("used", "import torch\nused = torch.func.grad(lambda x: x.sum() * {N})"),
    "a function of mneme": ("used", "from mneme import proximal, corrected\nused = (proximal, corrected)[{N} - 1]"),
    "a long list": ("USED", "USED = [0.5] * 100 + [{N}]"),
    "a counter": ("used", "import collections\nused = collections.Counter('a' * {N})"),
    "a module of torch": (
        "net(1)", "import torch\ntorch.manual_seed({N})\nnet = torch.nn.Linear(2, 2)"),
    "a user's module of torch": (
        "Net()", "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x * {N}"),
    "a scripted function": (
        "used(1)", "import torch\ndef of(x: int):\n    return x + {N}\nused = torch.jit.script(of)"),
    "a loss": ("used", "@mneme.loss\ndef used(logits, labels):\n    return logits.sum(1) * {N}"),
    "a constant of a loss": (
        "used", "factor = {N}\n@mneme.loss\ndef used(logits, labels):\n    return logits.sum(1) * factor"),
    "a constant that follows its loss": (
        "used", "@mneme.loss\ndef used(logits, labels):\n    return logits.sum(1) * factor\nfactor = {N}"),
    "a loss in a sum": (
        "used", "factor = {N}\n@mneme.loss\ndef of(logits, labels):\n    return logits.sum(1) * factor\n"
        "used = 2 * of + mneme.cross_entropy()"),
    "a factor of a loss": ("used", "used = {N} * mneme.cross_entropy()"),
    "a native loss": ("used", "used = mneme.proximal({N})"),
    "a loss of a lambda": ("used", "used = mneme.loss(lambda logits, labels: logits.sum(1) * {N})"),
    "a comprehension": ("[USED for _ in range(3)]", "USED = {N}"),
    "a nested function": ("(lambda: USED)()", "USED = {N}"),
    "a name that a builtin has": ("sum(1)", "def sum(x):\n    return {N}"),
    "another module": ("helpers.used()", "import helpers{N} as helpers"),
    "a name of another module": ("used()", "from helpers{N} import used"),
    "a value that another module uses": ("helpers.uses()", "import helpers{N} as helpers"),
    "a module in a package": ("pack.inner{N}.used()", "import pack.inner1, pack.inner2"),
    "a module that is looked up": ("getattr(helpers, 'used')()", "import helpers{N} as helpers"),
    "an import within a function": (
        "used()", "def used():\n    from helpers{N} import used as inner\n    return inner()"),
    "a module within a function": ("used()", "def used():\n    import helpers{N} as h\n    return h.used()"),
}
HELPERS = "VALUE = {N}\ndef used():\n    return {N}\ndef uses():\n    return VALUE\n"
# versions of the method's class attributes
OF_CLASS = {
    "its own function": "def helper(self):\n    return {N}",
    "a constant of the class": "rate = {N}",
    "a key's default": "rate = mneme.key({N}, help='x')",
    "a key's range": "rate = mneme.key(3, high={N}0, help='x')",
    "defaults of the scenario": "defaults = {{'rounds': {{'cohort': {N}}}}}",
    "its server": "class Server(mneme.AveragingServer):\n    def summary_metrics(self):\n        return {{'x': {N}}}",
    "parts, as earlier versions had them": "parts = (lambda: {N},)",
}
SAME = {  # different texts with equal digests
    "comments": ("USED = 1  # one\n", "USED = 1  # another\n# line\n"),
    "docstrings": ('def used():\n    """One."""\n    return 1\n', 'def used():\n    return 1\n'),
    "annotations": ("def used(x: int = 1) -> int:\n    return x\n", "def used(x=1):\n    return x\n"),
    "layout": ("def used(x=1):\n    return (x +\n            1)\n", "\n\ndef used(x = 1):\n    return x + 1\n"),
    "places": ("def used():\n    return 1\n", "def other():\n    return 2\n\n\ndef used():\n    return 1\n"),
    "the order of a dict": ("used = {'a': 1, 'b': 2}\n", "used = {'b': 2, 'a': 1}\n"),
    "the order of a set": ("used = {'a', 'b', 'c'}\n", "used = {'c', 'b', 'a'}\n"),
    "what is not used": ("used = 1\nother = 2\n", "used = 1\nother = open('/dev/null')\n"),
    "a logger": ("import logging\nused = logging.getLogger('a')\n", "import logging\nused = logging.getLogger('b')\n"),
}
REFUSED = {
    "an open file": ("USED.read()", "USED = open('/dev/null')", "'USED', which is a TextIOWrapper, which is consumed"),
    "a generator": ("USED", "USED = (n for n in range(3))", "'USED', which is a generator"),
    "an iterator": ("USED", "USED = iter([1, 2])", "'USED', which is a list_iterator"),
    "a lock": ("USED", "import threading\nUSED = threading.Lock()", "'USED', which is a lock with a state"),
    "a lock in an object": (
        "USED", "import threading\nclass Used:\n    def __init__(self):\n        self.lock = threading.Lock()\n"
        "USED = Used()", "'USED.lock', which is a lock"),
    "random numbers": ("USED.random()", "import random\nUSED = random.Random(1)", "ctx.random"),
    "random numbers of numpy": ("USED", "import numpy\nUSED = numpy.random.default_rng(1)", "ctx.random"),
    "random numbers of torch": ("USED", "import torch\nUSED = torch.Generator()", "ctx.random"),
    "eval": ("eval('USED')", "USED = 1", "'eval', which hides what it refers to"),
    "globals": ("globals()['USED']", "USED = 1", "'globals', which hides"),
    "a helper's file": (
        "used()", "log = open('/dev/null')\ndef used():\n    log.write('x')", "'log'.*M > .*used > log"),
}


VERSIONS = {  # modules whose digest is equal in Python 3.11.7, 3.12.1 and 3.13.0
    "parts.py": """
import collections, enum, functools, logging, math, os
from dataclasses import dataclass
SCALE = 2.0
HERE = os.path.dirname(os.path.abspath(__file__))
log = logging.getLogger(__name__)
def scaled(x):
    \"\"\"Doc.\"\"\"
    log.info("x")
    return x * SCALE + other(x)
def other(x: int, y=3):   # comment
    return math.sin(x) * y if x else scaled(x)
@dataclass
class Options:
    a: int = 3
    b: list = None
class Kind(enum.Enum):
    A = 1
    B = 2
Point = collections.namedtuple("Point", "x y")
@functools.lru_cache
def cached(x):
    return x + 1
pair = (lambda z: z + 1, lambda z: z + 2)
""",
    "uses.py": """
import contextlib, functools
import parts
from parts import Options, Kind, Point, cached
THE = {"b": 2, "a": {1, "x", (2, 3)}}
half = functools.partial(parts.scaled, 3)
def decorated(f):
    def inner(*a):
        return f(*a) + 1
    return inner
@decorated
def deep(x):
    return x in {"p", "q", "r"}
@contextlib.contextmanager
def opened(x):
    yield x
class Base:
    rate = 0.5
    def go(self):
        return [parts.scaled(i) for i in range(3)], THE, half
class M(Base):
    def run(self, x=Options(3)):
        from parts import pair
        import parts as p
        with opened(3):
            return deep(x), Kind.A, Point(1, 2), cached(3), pair[0](1), p.HERE, f"{x!r:>{x}}"
    @property
    def p(self):
        return super().go()
"""}


class Source(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.count = scratch.name, 0

    def digest(self, above, uses="None", of_class=""):
        """Returns the digest of a method in a new package that also contains its helper modules."""
        self.count += 1
        folder = os.path.join(self.folder, str(self.count))
        os.makedirs(os.path.join(folder, "pack"))
        for number in (1, 2):
            for name in (f"helpers{number}", f"pack/inner{number}"):
                with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
                    file.write(HELPERS.format(N=number))
        path = os.path.join(folder, "m.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import mneme\n" + above + "\n" + METHOD.format(uses=uses) + textwrap.indent(of_class, "    "))
        for name in [name for name in sys.modules if name.startswith(("helpers", "pack"))]:
            del sys.modules[name]
        try:
            return methods_of(path)[0]._source_digest()
        finally:
            sys.path.remove(folder)
            importlib.invalidate_caches()

    def test_everything_that_code_refers_to_changes_the_digest(self):
        for name, (uses, above) in DIFFER.items():
            with self.subTest(name):
                digests = [self.digest(above.format(N=number), uses.format(N=number).replace("{N}", str(number)))
                           for number in (1, 2, 1)]
                self.assertEqual(digests[0], digests[2])
                self.assertNotEqual(digests[0], digests[1])

    def test_everything_in_the_class_changes_the_digest(self):
        for name, text in OF_CLASS.items():
            with self.subTest(name):
                digests = [self.digest("", of_class=text.format(N=number)) for number in (1, 2, 1)]
                self.assertEqual(digests[0], digests[2])
                self.assertNotEqual(digests[0], digests[1])

    def test_equivalent_code_keeps_the_digest(self):
        for name, texts in SAME.items():
            with self.subTest(name):
                uses = "USED" if "USED" in texts[0] else "used"
                self.assertEqual(*(self.digest(text, uses) for text in texts))

    def test_objects_without_a_digest_are_refused_by_name(self):
        for name, (uses, above, words) in REFUSED.items():
            with self.subTest(name):
                with self.assertRaisesRegex(mneme.ScenarioError, words) as caught:
                    self.digest(above, uses)
                self.assertRegex(caught.exception.findings[0][0], r"m.py:\d+$")
                self.assertIn("the method 'M' refers to", str(caught.exception))

    def test_a_file_in_the_modules_folder_is_named_relative_to_it(self):
        above = ("import os, pathlib\nHERE = os.path.dirname(os.path.abspath(__file__))\n"
                 "NET = pathlib.Path(__file__).parent / 'a'")
        uses = "HERE, NET, __file__, __name__"
        self.assertEqual(self.digest(above, uses), self.digest(above, uses))
        self.assertNotEqual(self.digest(above, uses), self.digest(above.replace("'a'", "'b'"), uses))

    def test_the_digest_is_equal_on_every_python_version(self):
        for name, text in VERSIONS.items():
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        sys.path.insert(0, self.folder)
        try:
            uses = importlib.import_module("uses")
        finally:
            sys.path.remove(self.folder)
        self.assertEqual(digest_of_source(uses.M), "ecaa26b101bd7adb404fb665e22bd5d2")

    def test_the_digest_is_equal_in_every_process(self):
        code = "import python_methods as m; print([c._source_digest() for c in (m.Icarl, m.Scaffold, m.SquaredError)])"
        said = {subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=folder,
                               env={**os.environ, "PYTHONHASHSEED": seed}).stdout
                for seed, folder in (("0", "/"), ("1", self.folder))}
        self.assertEqual(len(said), 1)

    def test_code_without_a_file_has_a_digest(self):
        digests = []
        for number in (1, 2, 1):
            scope = {"mneme": mneme}
            exec(f"used = lambda: {number}\n" + METHOD.format(uses="used()"), scope)
            digests.append(scope["M"]._source_digest())
        self.assertEqual(digests[0], digests[2])
        self.assertNotEqual(digests[0], digests[1])

    def test_a_file_changed_after_its_import_keeps_the_loaded_codes_digest(self):
        path = os.path.join(self.folder, "m.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write("import mneme\nUSED = 1\n" + METHOD.format(uses="USED"))
        method, = methods_of(path)
        before = method._source_digest()
        with open(path, "w", encoding="utf-8") as file:
            file.write("import mneme\nUSED = 1\n" + METHOD.format(uses="USED, 2"))
        self.assertEqual(method._source_digest(), before)
        with open(path, "w", encoding="utf-8") as file:
            file.write("")
        self.assertEqual(method._source_digest(), before)


factor = 1.0


@mneme.loss
def scaled(logits, labels):
    import torch.nn.functional as F
    return F.cross_entropy(logits, labels, reduction="none") * factor


class Scaled(mneme.Method):
    name = "py-scaled"

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=scaled)
        return mneme.Upload(trained.weights, rows=trained.rows)


class Local(mneme.Method):
    """Creates a new loss object in each round."""
    name = "py-local"
    rate = mneme.key(0.5, help="Factor of the loss.")

    def client_round(self, ctx, broadcast):
        loss = mneme.loss(lambda logits, labels: -logits.log_softmax(1).gather(1, labels[:, None])[:, 0] * self.rate)
        trained = yield ctx.train(start=broadcast.weights, loss=loss)
        return mneme.Upload(trained.weights, rows=trained.rows)


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def tearDown(self):
        global factor
        factor = 1.0

    def test_sweep_and_resume_reject_runs_of_an_earlier_source(self):
        global factor
        out = os.path.join(self.folder, "sweep")
        first = mneme.sweep(scenario("py-scaled"), seeds=[1], methods=[Scaled], out=out)[0]
        again = mneme.sweep(scenario("py-scaled"), seeds=[1], methods=[Scaled], out=out)[0]
        self.assertEqual(again.folder, first.folder)
        factor = 0.25
        second = mneme.sweep(scenario("py-scaled"), seeds=[1], methods=[Scaled], out=out)[0]
        self.assertNotEqual((second.folder, second.digest), (first.folder, first.digest))
        with self.assertRaisesRegex(mneme.ScenarioError, "another source"):
            mneme.resume(first.folder, methods=[Scaled])

    def test_an_executor_process_with_another_source_is_refused(self):
        out = os.path.join(self.folder, "sweep")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=FORKS) as executor:
            run = lambda: mneme.sweep(scenario("py-squared-error"), seeds=[1], methods=[methods.SquaredError], out=out,
                                      executor=executor)
            first = run()[0]
            methods.squared_error.scale = 2.0
            self.addCleanup(delattr, methods.squared_error, "scale")
            with self.assertRaisesRegex(mneme.ScenarioError, "SquaredError: its source in the executor's process"):
                run()
        self.assertEqual([found.folder for found in mneme.runs(out)], [first.folder])

    def test_a_loss_created_in_each_round_is_reused(self):
        run = lambda name, **sections: mneme.run(scenario("py-local", **sections), methods=[Local],
                                                 out=os.path.join(self.folder, name))
        one, many = run("one", worker={"fused_clients_max": 1}), run("many", worker={"fused_clients_max": 5})
        self.assertEqual(one.digest, many.digest)
        self.assertNotEqual(run("other", strategy={"rate": 0.1}).digest, one.digest)

    def test_methods_without_a_digest_are_refused_before_the_run(self):
        with open(os.devnull, encoding="utf-8") as log:
            class Logs(mneme.Method):
                """Logs its calls."""
                name = "py-logs"

                def client_round(self, ctx, broadcast):
                    log.write("x")
                    trained = yield ctx.train()
                    return mneme.Upload(trained.weights)
            for act in (lambda: mneme.run(scenario("py-logs"), methods=[Logs], out=os.path.join(self.folder, "never")),
                        lambda: mneme.validate(scenario("py-logs"), methods=[Logs])):
                with self.assertRaisesRegex(mneme.ScenarioError, "'Logs' refers to 'log', which is a TextIOWrapper"):
                    act()
        self.assertFalse(os.path.exists(os.path.join(self.folder, "never")))


if __name__ == "__main__":
    python_package.run_tests()
