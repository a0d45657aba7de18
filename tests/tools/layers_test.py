"""Layers: forbidden includes are detected in each layer; docs/layers.md shows the layers of the build."""
import os
import re
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools"))
import layers as drawer  # noqa: E402
import tidy  # noqa: E402

TREE = tidy.read_tree(ROOT)
LAYERS = tidy.read_layers(TREE)


def first_in(layer, ending):
    """Returns the first file of a layer with this extension."""
    return min(path for path in TREE if tidy.layer_of(path, LAYERS) == layer and path.endswith(ending))


def forbidden_for(layer):
    """Returns a layer that this one must not include: the lowest above it; for the highest, one that it omits."""
    below = drawer.reach(LAYERS)
    above = [one for one in LAYERS if layer in below[one]]
    return (above or [one for one in LAYERS if one != layer and one not in LAYERS[layer]])[0]


class Layers(unittest.TestCase):
    maxDiff = None

    def test_a_forbidden_include_is_found_in_each_layer(self):
        self.assertGreater(len(LAYERS), 15)
        changed, wanted = dict(TREE), []
        for layer in LAYERS:
            path, header = first_in(layer, ".cpp"), first_in(forbidden_for(layer), ".hpp")
            changed[path] = f'#include "{header}"\n' + TREE[path]
            what = f"{layer} must not include {forbidden_for(layer)} ({tidy.LAYERS_FILE})"
            wanted.append(tidy.Finding(path, 1, "layer", what))
        self.assertEqual(sorted(tidy.layer_arrows(changed)), sorted(wanted))
        self.assertIn(tidy.layer_arrows, tidy.RULES)

    def test_no_layer_depends_on_an_optional_one(self):
        lines = "layer(runtime/base)\noptional_layer(MNEME_X runtime/x base)\nlayer(runtime/y x)\n"
        found = list(tidy.layer_arrows({tidy.LAYERS_FILE: lines,
                                        "runtime/x/x.hpp": '#include "runtime/base/b.hpp"\n',
                                        "runtime/y/y.hpp": '#include "runtime/x/x.hpp"\n'}))
        self.assertEqual([finding.text for finding in found],
                         ["runtime/y depends on runtime/x, which builds may leave out; register it at a door"])

    def test_the_diagram_omits_indirect_dependencies(self):
        text = "layer(runtime/a)\nlayer(runtime/b a)\nlayer(runtime/c a)\nlayer(actors/d a b c)\nlayer(actors/e c)\n"
        layers = tidy.read_layers({tidy.LAYERS_FILE: text})
        self.assertEqual(drawer.drawing(layers), "runtime/a\nruntime/b ◄ a   runtime/c ◄ a\n"
                                                 "actors/d ◄ b c   actors/e ◄ c\n")

    def test_the_docs_show_the_layers_of_the_build(self):
        drawn = re.search(r"<!-- tools/layers.py -->\n```\n(.*?)```\n", TREE["docs/layers.md"], re.S).group(1)
        self.assertEqual(drawn, drawer.drawing(LAYERS), "paste what tools/layers.py prints")


if __name__ == "__main__":
    unittest.main()
