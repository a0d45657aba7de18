"""tools/tidy.py: every rule fires on a small tree, and none on a clean one."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import tidy  # noqa: E402

import name_rules  # noqa: E402, found by tidy

HEADER = """/// thing: a thing that tests look at.
#pragma once
#include <vector>
namespace mneme {

class thing {
public:
  explicit thing(int n = 0, std::vector<int> sizes = {}) : n_(n), sizes_{sizes} {}
  [[nodiscard]] int size() const noexcept { return n_; } // the word co_await in a comment
  /// Twice as many.
  [[nodiscard]] int doubled() const;

private:
  int n_ = 0;
  std::vector<int> sizes_;
};

} // namespace mneme
"""
SOURCE = """#include "runtime/base/thing.hpp"
namespace mneme {

int thing::doubled() const { return 2 * size(); }

} // namespace mneme
"""
METHOD = """// A method.
#include "runtime/base/thing.hpp"
namespace mneme {
namespace {

task<int> round(thing whole) {
  auto training = train(whole.doubled());
  const auto [a, b] = co_await training;
  co_return a;
}

const strategy_registration line{
    {.name = "simple", .make = []() -> std::unique_ptr<strategy> { return std::make_unique<simple>(); }}};

} // namespace
} // namespace mneme
"""
LAYERS = """# layer(not this)
layer(runtime/base)
layer(runtime/models)
layer(runtime/data)
layer(strategies base)
layer(actors/run)
"""
CLEAN = {"runtime/base/thing.hpp": HEADER, "runtime/base/thing.cpp": SOURCE, "strategies/baselines/simple.cpp": METHOD,
         "tools/cmake/layers.cmake": LAYERS, "README.md": "# mneme\n"}


def found(changes, rules=tuple(tidy.RULES)):
    """Returns [(rule, path, line)] for the clean tree with some files added or replaced."""
    tree = {**CLEAN, **changes}
    return sorted((one.rule, one.path, one.line) for rule in rules for one in rule(tree))


class Tidy(unittest.TestCase):
    def test_a_clean_tree_has_no_findings(self):
        self.assertEqual(found({}), [])

    def test_the_tree_is_read_from_git(self):
        tree = tidy.read_tree(ROOT)
        self.assertIn("tools/tidy.py", tree)
        self.assertFalse([path for path in tree if path.startswith("build/")])

    def test_a_layer_may_include_only_the_layers_of_its_line(self):
        layers = LAYERS.replace("me/data", "me/data base").replace("actors/run", "actors/run base\n      data")
        data, base = '#include "runtime/data/a.hpp"\n', '#include "runtime/base/thing.hpp"\n'
        header = "/// A header.\n#pragma once\n"
        good = {"tools/cmake/layers.cmake": layers, "tools/t.hpp": header, "runtime/data/a.hpp": header + base,
                "runtime/data/deep/b.cpp": data, "actors/run/c.hpp": header + base, "actors/run/d.cpp": base + data}
        self.assertEqual(found(good), [])
        for path, name in (("runtime/base/x.cpp", "runtime/data/a.hpp"), ("runtime/base/x/y.cpp", "tools/t.hpp"),
                           ("strategies/shared/x.cpp", "runtime/data/a.hpp"),
                           ("strategies/shared/x.cpp", "actors/run/c.hpp"), ("runtime/data/x.cpp", "actors/run/c.hpp"),
                           ("runtime/data/deep/x.cpp", "runtime/none/x.hpp"),
                           ("actors/run/x.cpp", "strategies/baselines/simple.cpp")):
            text = '#include <vector>\n#include "' + name + '"\n'
            rules = {rule for rule, at, line in found({**good, path: text}) if (at, line) == (path, 2)}
            self.assertIn("layer", rules, name)

    def test_strategies_shared_is_used_by_two_families(self):
        rules, header = [tidy.families], "/// A header.\n#pragma once\n"
        uses_step = '#include "strategies/shared/step.hpp"\n'
        shared = {"strategies/shared/step.hpp": header + '#include "strategies/shared/sum.hpp"\n',
                  "strategies/shared/sum.hpp": header,
                  "strategies/shared/sum.cpp": '#include "strategies/shared/low.hpp"\n',
                  "strategies/shared/low.hpp": header, "strategies/one/part.hpp": header + uses_step,
                  "strategies/one/one.cpp": '#include "strategies/one/part.hpp"\n'}
        names = ("low.hpp", "step.hpp", "sum.cpp", "sum.hpp")
        self.assertEqual(found({**shared, "strategies/dropped_in.cpp": uses_step}, rules), [])
        self.assertEqual(found({**shared, "strategies/two/two.cpp": uses_step}, rules), [])
        sole = [("family", "strategies/shared/" + name, 1) for name in names]
        self.assertEqual(found(shared, rules), sole)
        self.assertEqual(found({"tests/a.cpp": uses_step, "strategies/shared/step.hpp": header}, rules), [sole[1]])

    def test_a_family_may_not_include_another(self):
        rules, header = [tidy.families], "/// A header.\n#pragma once\n"
        part = {"strategies/one/part.hpp": header, "strategies/one/one.cpp": '#include "strategies/one/part.hpp"\n'}
        self.assertEqual(found(part, rules), [])
        self.assertEqual(found({**part, "strategies/two/two.cpp": '\n#include "strategies/one/part.hpp"\n'}, rules),
                         [("family", "strategies/two/two.cpp", 2)])

    def test_a_layer_must_include_the_layers_of_its_line(self):
        layers = LAYERS.replace("actors/run", "actors/run base")
        self.assertEqual(found({"tools/cmake/layers.cmake": layers}), [("layer", "tools/cmake/layers.cmake", 6)])

    def test_every_file_belongs_to_a_layer(self):
        self.assertEqual(found({"runtime/x.cpp": "", "actors/notes.md": "", "runtime/odd/x.cpp": ""}),
                         [("layer", "actors/notes.md", 1), ("layer", "runtime/odd/x.cpp", 1),
                          ("layer", "runtime/x.cpp", 1)])
        self.assertEqual(found({"runtime/base/README.md": ""}), [])

    def test_includes_exist_and_caf_stays_out_of_runtime(self):
        text = '#include <caf/all.hpp>\n#include "runtime/base/none.hpp"\n'
        self.assertEqual(found({"runtime/base/bad.cpp": text}),
                         [("include", "runtime/base/bad.cpp", 1), ("include", "runtime/base/bad.cpp", 2)])
        self.assertEqual(found({"tests/bad.cpp": "#include <caf/all.hpp>\n"}), [])

    def test_a_method_has_no_threads_no_files_and_no_actors(self):
        text = "#include <thread>\n#include <fstream>\n#include <vector>\n" + METHOD
        self.assertEqual(found({"strategies/baselines/bad.cpp": text}),
                         [("include", "strategies/baselines/bad.cpp", line) for line in (1, 2)])

    def test_whole_library_headers_are_refused(self):
        self.assertEqual(found({"tests/bad.cpp": "#include <torch/" + "torch.h>\n"}), [("include", "tests/bad.cpp", 1)])
        text = "/// A header.\n#pragma once\n#include <ATen/ATen.h>\n"
        self.assertEqual(found({"runtime/base/bad.hpp": text}), [("include", "runtime/base/bad.hpp", 3)])

    def test_a_file_has_at_most_500_lines(self):
        self.assertEqual(found({"runtime/base/long.cpp": "\n" * 500}), [])
        self.assertEqual(found({"runtime/base/long.cpp": "\n" * 501}), [("file-length", "runtime/base/long.cpp", 501)])

    def test_a_line_has_at_most_120_characters(self):
        self.assertEqual(found({"tools/w.cpp": "//" + "x" * 118 + "\n"}), [])
        self.assertEqual(found({"tools/w.cpp": "//" + "x" * 119 + "\n"}), [("line-length", "tools/w.cpp", 1)])

    def test_a_function_has_at_most_70_lines(self):
        def with_body(lines):
            body = "    g([&] { x; });\n" * lines
            return "namespace mneme {\nclass a {\npublic:\n  int f(int x) {\n" + body + "  }\n};\n}\n"

        self.assertEqual(found({"runtime/base/f.cpp": with_body(68)}), [])
        self.assertEqual(found({"runtime/base/f.cpp": with_body(69)}), [("function-length", "runtime/base/f.cpp", 4)])
        python = "def f():\n" + "    g()\n" * 70
        self.assertEqual(found({"tools/f.py": python}), [("function-length", "tools/f.py", 1)])

    def test_a_long_initialiser_list_does_not_hide_a_long_body(self):
        text = "thing::thing(int n)\n    : n_{n}, of_(n) {\n" + "  work();\n" * 69 + "}\n"
        self.assertEqual([rule for rule, _, _ in found({"runtime/base/f.cpp": text})], ["function-length"])

    def test_a_header_starts_with_a_sentence(self):
        self.assertEqual(found({"runtime/base/bad.hpp": "#pragma once\n"}), [("header", "runtime/base/bad.hpp", 1)])
        self.assertEqual(found({"runtime/base/bad.hpp": "/// A header.\n"}), [("header", "runtime/base/bad.hpp", 1)])

    def test_an_await_is_a_statement_on_a_named_object(self):
        good = ["auto x = co_await name;", "const auto& x = co_await name;", "auto [a, b] = co_await both;",
                "co_await name;", "x = co_await name;", "task<int> operator co_await() &;", 'say("co_await f()");']
        bad = ["auto x = co_await train(a);", "auto x{co_await name};", "f(co_await name);", "co_return co_await name;",
               "auto x = a ? co_await b : c;", "if (co_await name)"]
        for line in good:
            self.assertEqual(found({"runtime/base/a.cpp": "  " + line + "\n"}), [], line)
        for line in bad:
            at = "runtime/base/a.cpp"
            self.assertEqual(found({at: "  " + line + "\n"}), [("await", at, 1)], line)

    def test_a_method_a_model_and_a_source_have_registration_lines(self):
        for path in ("strategies/other.cpp", "strategies/simple/other.cpp", "strategies/shared/other.cpp"):
            self.assertIn(("registration", path, 1), found({path: "int x;\n"}))
        part = {"strategies/simple/part.hpp": "/// part: half a method.\n#pragma once\n",
                "strategies/simple/half.cpp": '#include "strategies/simple/part.hpp"\n'}
        self.assertEqual(found(part), [])
        headed = {**part, "strategies/simple/half.cpp": "// A method.\n" + part["strategies/simple/half.cpp"]}
        self.assertEqual(found(headed), [("registration", "strategies/simple/half.cpp", 2)])
        model = "class mlp final : public model_kind {\n};\n"
        self.assertEqual(found({"runtime/models/mlp.cpp": model}), [("registration", "runtime/models/mlp.cpp", 2)])
        self.assertEqual(found({"runtime/models/mlp.cpp": model + "const model_registration line{{}};\n"}), [])
        self.assertEqual(found({"runtime/models/layers.cpp": "int x;\n"}), [])
        source = "// const source_registration line{{}};\n"
        path = "runtime/data/sources/a.cpp"
        self.assertEqual(found({path: source}), [("registration", path, 1)])

    def test_clocks_and_generators_are_limited_to_listed_files(self):
        clock = "auto t = std::chrono::steady_clock::now();\n"
        self.assertEqual(found({"actors/run/worker.cpp": clock}), [("clock", "actors/run/worker.cpp", 1)])
        self.assertEqual(found({"actors/run/recorder.cpp": clock, "tools/bench/a.cpp": clock}), [])
        for draw in ("std::random_device x;", "int x = rand();", "std::normal_distribution<> x;", "at::randn({3});"):
            self.assertEqual(found({"runtime/base/a.cpp": draw + "\n"}), [("generator", "runtime/base/a.cpp", 1)], draw)
        self.assertEqual(found({"runtime/base/a.cpp": "std::mt19937 x(1993); x.operand(1);\n"}), [])

    def test_exceptions_are_caught_only_in_listed_files(self):
        text = "int f() try {\n} catch (...) {\n}\n// catch (all)\n"
        self.assertEqual(found({"runtime/base/a.cpp": text}, [tidy.catches]), [("catch", "runtime/base/a.cpp", 2)])
        self.assertEqual(found({"runtime/base/exception_message.cpp": text, "tools/a.cpp": text}, [tidy.catches]), [])

    def test_a_declaration_is_defined_and_used(self):
        header = HEADER.replace("  /// Twice", "  void forgotten(int n = 1);\n  /// Twice")
        self.assertEqual(found({"runtime/base/thing.hpp": header}), [("dead", "runtime/base/thing.hpp", 10)])
        defined = SOURCE + "void thing::forgotten(int n) {}\n"
        self.assertEqual(found({"runtime/base/thing.hpp": header, "runtime/base/thing.cpp": defined}),
                         [("dead", "runtime/base/thing.hpp", 10)])
        used = defined + "static const int x = (thing().forgotten(2), 0);\n"
        self.assertEqual(found({"runtime/base/thing.hpp": header, "runtime/base/thing.cpp": used}), [])

    def test_a_defining_macro_in_column_1_defines_its_first_argument(self):
        header = "/// Kernels.\n#pragma once\nvoid relu(float* x);\nvoid scale(float* x);\n"
        kernels = "MNEME_KERNEL(relu, (float* x), (x))\nMNEME_KERNEL(scale, (float* x), (x))\nint a = (relu(0), 0);\n"
        self.assertEqual(found({"runtime/base/relu.hpp": header, "runtime/base/relu.cpp": kernels}),
                         [("dead", "runtime/base/relu.hpp", 4)])

    def test_an_uncalled_virtual_function_is_dead_despite_overrides(self):
        base = "/// A base.\n#pragma once\nclass base {\npublic:\n  virtual int answer() const = 0;\n};\n"
        derived = "class derived : public base {\n  int answer() const override { return 1; }\n};\n"
        self.assertEqual(found({"runtime/base/base.hpp": base, "runtime/base/derived.cpp": derived}),
                         [("dead", "runtime/base/base.hpp", 5)])

    def test_a_header_declares_a_name_that_resembles_its_own(self):
        start, rules = "/// A header.\n#pragma once\nnamespace mneme {\n", [tidy.header_names]
        path = "runtime/base/rounding_modes.hpp"
        for good in ("struct rounding {};", "void set_mode(int n);", "enum class mode : int { up, down };",
                     "template <class T>\nclass rounded {\n  int n_;\n};", "inline constexpr int rounds_max = 1;",
                     "using modes = std::vector<int>;", ""):
            self.assertEqual(found({path: start + good + "\n}\n"}, rules), [], good)
        for bad in ("struct other {\n  int rounding = 1;\n};", "void set(int mode);", "using other = mode;"):
            self.assertEqual(found({path: start + bad + "\n}\n"}, rules), [("header-name", path, 1)], bad)
        self.assertEqual(found({"actors/run/messages.hpp": start + "struct stop {};\n}\n"}, rules), [])

    def test_a_functions_name_belongs_to_one_folder(self):
        rules, text = [tidy.spread_names], "std::string shown(int n);\nstruct a {\n  int size();\n};\n"
        self.assertEqual(found({"runtime/base/a.hpp": text, "runtime/base/b.hpp": text}, rules), [])
        self.assertEqual(found({"runtime/base/a.hpp": text, "runtime/data/b.hpp": "\n" + text}, rules),
                         [("spread-name", "runtime/base/a.hpp", 1), ("spread-name", "runtime/data/b.hpp", 2)])

    def test_a_type_name_is_defined_once(self):
        def named_twice(second, path="runtime/models/other.cpp", first="struct layer {\n  int size = 0;\n};"):
            text = "#include \"runtime/base/thing.hpp\"\nnamespace mneme {\n%s\n}\n"
            return found({"runtime/base/first.cpp": text % first, path: text % second}, [name_rules.one_type])

        twice = [("one-type", "runtime/base/first.cpp", 3), ("one-type", "runtime/models/other.cpp", 3)]
        for second in ("class layer final : public thing {};", "enum class layer { first };", "using layer = int;",
                       "template <class T>\nstruct layer {};",
                       "namespace {\nint x;\n}\nstruct [[nodiscard]] layer {};"):
            lines = [(rule, path) for rule, path, _ in named_twice(second)]
            self.assertEqual(lines, [finding[:2] for finding in twice], second)
        self.assertEqual(named_twice("struct layer {};"), twice)
        self.assertEqual(named_twice("using layer = long;", first="using layer = int;"), twice)
        for second in ("struct layer;", "namespace {\nstruct layer {};\n}", "namespace other {\nstruct layer {};\n}",
                       "struct outer {\n  struct layer {};\n};", "void f() {\n  struct layer {};\n}",
                       "template <>\nstruct layer<int> {};"):
            self.assertEqual(named_twice(second), [], second)
        self.assertEqual(named_twice("using layer = int;", first="using layer = int;"), [])

    def test_registry_hosts_and_machine_paths_are_found(self):
        self.assertEqual(found({"a.sh": "curl https://py" + "pi.org/simple\n"}), [("host", "a.sh", 1)])
        self.assertEqual(found({"a.md": "see /ro" + "ot/notes\n"}), [("machine-path", "a.md", 1)])
        self.assertEqual(found({"a.md": "see $x/wo" + "rk/notes and tests/ro" + "ot/x\n"}), [])

    def test_unfinished_code_is_found(self):
        at = "runtime/base/a.cpp"
        self.assertEqual(found({at: "// TO" + "DO: all of it\n"}), [("unfinished", at, 1)])
        self.assertEqual(found({"tests/a.cpp": "SUCC" + "EED();\n"}), [("empty-test", "tests/a.cpp", 1)])

    def test_tidy_prints_locations_and_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in {**CLEAN, "runtime/base/bad.hpp": "int bad;\n", "build/out.hpp": "int x;\n"}.items():
                os.makedirs(os.path.dirname(os.path.join(folder, path)), exist_ok=True)
                with open(os.path.join(folder, path), "w", encoding="utf-8") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "tidy.py"), folder], capture_output=True,
                                  text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual([line.split(": ")[0] for line in done.stdout.splitlines()],
                         ["runtime/base/bad.hpp:1", "runtime/base/bad.hpp:1", "tidy"])


if __name__ == "__main__":
    unittest.main()
