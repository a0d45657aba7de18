"""Search with valid and hostile modules: random TorchScript code, and exported programs with changed JSON or calls.
Each must be accepted or rejected with a reason within the time limit, without touching a file or crashing the probing
process."""
import os
import random

from changed_calls import drawn_call
from program_draws import drawn_program, packed, read_entries
from reader_cases import IMAGES, MODULE, _scenario
from started_programs import StartedPrograms

LIMIT_S = 120
ADDRESSES_BYTES = 24 << 30  # above the sandbox's own limits
TOGETHER = 8
OPERATORS = ["relu", "sigmoid", "add", "mul", "matmul", "flatten", "softmax", "conv2d", "dropout", "cat",
             "stack", "zeros", "size", "len", "format", "sub_", "copy_", "resize_", "set_", "from_file", "save",
             "load", "tensor", "empty", "as_strided", "index_put_", "einsum", "repeat_interleave", "embedding",
             "eq", "item", "numpy_T", "warn"]
NAMESPACES = ["torch.", "torch.", "torch.", "ops.aten.", "ops.prim.", "ops.prepacked.", "ops.quantized.", "ops.mkldnn.",
              "ops.c10d.", "ops.profiler.", "ops.inductor.", "ops.rpc.", "__torch__.", "builtins.", ""]


class _Grammar:
    def __init__(self, draw, canary):
        self.draw, self.canary, self.names, self.depth = draw, canary, ["x"], 0

    def value(self):
        self.depth += 1
        deep = self.depth > self.draw.choice([3, 3, 3, 40])
        shallow = ["name", "number", "text"]
        further = ["call", "call", "list", "index", "method", "tuple", "constant"]
        choice = self.draw.choice(shallow if deep else shallow + further)
        made = getattr(self, "_" + choice)()
        self.depth -= 1
        return made

    def _name(self):
        return self.draw.choice(self.names + ["self.training", "self", "CONSTANTS.c0"])

    def _number(self):
        return self.draw.choice(["0", "1", "-1", "3", "0.5", "1e308", "9223372036854775807", "99999999999999999999",
                                 "inf", "True", "None"])

    def _text(self):
        return self.draw.choice([f'"{self.canary}"', '"/etc/passwd"', '"{}"', '"\\n"', '"' + "a" * 2000 + '"', '"'])

    def _call(self):
        values = ", ".join(self.value() for _ in range(self.draw.choice([0, 1, 1, 2, 3, 5])))
        return f"{self.draw.choice(NAMESPACES)}{self.draw.choice(OPERATORS)}({values})"

    def _list(self):
        return "[" + ", ".join(self.value() for _ in range(self.draw.choice([0, 1, 3]))) + "]"

    def _tuple(self):
        return "(" + ", ".join(self.value() for _ in range(2)) + ",)"

    def _index(self):
        return f"{self._name()}[{self.value()}]"

    def _method(self):
        method = self.draw.choice(["forward", "__setstate__", "__getstate__", "training", "to", "append"])
        return f"({self._name()}).{method}({self.value()}, )"

    def _constant(self):
        kind = self.draw.choice(["Tensor", "List[int]", "Any", "Dict[str, Tensor]", "Future[int]"])
        return f"annotate({kind}, {self.value()})"

    def lines(self, indent, count):
        return "".join(self._line(indent) for _ in range(count))

    def _line(self, indent):
        lead = " " * indent
        kind = self.draw.choice(["set", "set", "set", "if", "for", "while", "call", "pass", "raise", "fork"])
        if kind == "set":
            name = f"v{len(self.names)}"
            line = f"{lead}{name} = {self.value()}\n"
            self.names.append(name)
            return line
        if kind == "if":
            return f"{lead}if {self.value()}:\n{self.lines(indent + 2, 1)}{lead}else:\n{lead}  pass\n"
        if kind == "for":
            return f"{lead}for i in range({self.draw.choice(['3', '9223372036854775807', self.value()])}):\n" + \
                self.lines(indent + 2, 1)
        if kind == "while":
            return f"{lead}while {self.draw.choice(['True', 'False', self.value()])}:\n{self.lines(indent + 2, 1)}"
        if kind == "raise":
            return f"{lead}ops.prim.RaiseException({self.value()})\n"
        if kind == "fork":
            return f"{lead}v{len(self.names)} = fork({self.value()})\n"
        return f"{lead}pass\n" if kind == "pass" else f"{lead}_ = {self.value()}\n"


def drawn_code(draw, canary):
    """Code of a module whose forward() executes random statements before its regular ones."""
    if draw.random() < 0.5:
        return _module_code("", "", drawn_call(draw))
    grammar = _Grammar(draw, canary)
    lines = grammar.lines(4, draw.choice([0, 1, 2, 5, 30]))
    beside = "  def __setstate__(self: __torch__.Tiny,\n    state: Any) -> NoneType:\n" + \
        _Grammar(draw, canary).lines(4, 2) + "    return None\n" if draw.random() < 0.2 else ""
    hook = "@hook\n" if draw.random() < 0.05 else ""
    return _module_code(hook, beside, lines)


def _module_code(hook, beside, lines):
    return hook + "".join(["class Tiny(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n",
                           "  _is_full_backward_hook : Optional[bool]\n",
                           "  conv : __torch__.torch.nn.modules.conv.Conv2d\n",
                           "  bn : __torch__.torch.nn.modules.batchnorm.BatchNorm2d\n", beside,
                           "  def forward(self: __torch__.Tiny,\n    x: Tensor) -> Tensor:\n", lines,
                           "    bn = self.bn\n    conv = self.conv\n",
                           "    x0 = torch.relu((bn).forward((conv).forward(x, ), ))\n",
                           "    return torch.flatten(torch.avg_pool2d(x0, [2, 2]), 1)\n"])


class ModuleSearch:
    seeds_at_once = TOGETHER

    def __init__(self, program, folder):
        self.folder, self.work = folder, os.path.join(folder, "work")
        os.makedirs(self.work, exist_ok=True)
        self.canary = os.path.join(folder, "canary")
        self.programs = StartedPrograms(program, folder, LIMIT_S, ADDRESSES_BYTES)
        self.counts = {"modules": 0, "taken": 0, "refused": 0, "found": 0}
        self.script, self.program = read_entries(MODULE), read_entries(MODULE + "2")
        for honest in (self.script, self.program):
            outcome = self._validated([0], [packed(honest)])
            if outcome.code != 0:
                raise SystemExit(f"the honest module is refused: {outcome.errors}")

    def drawn_file(self, seed):
        """Content of an exported program for odd seeds, and of a TorchScript file for even ones."""
        draw = random.Random(seed)
        if seed % 2 == 1:
            return drawn_program(self.program, draw)
        return packed({**self.script, "archive/code/__torch__.py": drawn_code(draw, self.canary)})

    def _validated(self, seeds, files):
        scenarios = []
        for seed, content in zip(seeds, files):
            place = os.path.join(self.work, str(seed))
            os.makedirs(place, exist_ok=True)
            with open(os.path.join(place, "net.pt"), "wb") as file:
                file.write(content)
            scenarios.append(os.path.join(place, "s.toml"))
            with open(scenarios[-1], "w", encoding="utf-8") as file:
                file.write(_scenario(IMAGES, 'module = "net.pt"'))
        return self.programs.run(["validate", *scenarios])

    def _files(self):
        return sorted(os.path.join(at, name) for at, _, names in os.walk(self.work) for name in names)

    def try_seed(self, seed, count=1):
        """Tries a module for each of `count` seeds. Returns a description of the fault, or None."""
        seeds = list(range(seed, seed + count))
        files = [self.drawn_file(number) for number in seeds]
        ended = self._validated(seeds, files)
        self.counts["modules"] += count
        taken = sum(line.endswith(": ok") for line in ended.errors.splitlines())
        self.counts["taken"] += taken
        self.counts["refused"] += count - taken
        fault = self._fault_of(ended, seeds)
        if not fault:
            return None
        self.counts["found"] += 1
        for number, content in zip(seeds, files):
            with open(os.path.join(self.folder, f"found-{number}.zip"), "wb") as file:
                file.write(content)
        return f"seeds {seed} to {seeds[-1]}: {fault}\n  the files are {self.folder}/found-*.zip"

    def _fault_of(self, ended, seeds):
        if ended.code not in (0, 2):
            return f"it ended with code {ended.code}: {ended.errors[-600:]}"
        if os.path.exists(self.canary) or any(not name.endswith(("net.pt", "s.toml")) for name in self._files()):
            return "a file was written"
        if "ended by signal" in ended.errors:
            return f"a trial crashed: {ended.errors[-600:]}"
        for seed in seeds:
            place = os.path.join(self.work, str(seed)) + os.sep
            lines = [line for line in ended.errors.splitlines() if place in line]
            if not any("error: " in line or line.endswith(": ok") for line in lines):
                return f"nothing was said of {place}: {ended.errors[-300:]}"
        return None

    def close(self):
        self.programs.close()
