"""tools/plot.py and the two programs that use it."""
import os
import sys
import unittest
import xml.dom.minidom

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, run_tests  # noqa: E402

sys.path[:0] = [os.path.join(ROOT, "tools"), os.path.join(ROOT, "tools", "research", "studies")]
sys.dont_write_bytecode = True
import beta_picture  # noqa: E402
import plot  # noqa: E402


def elements(svg, name):
    return xml.dom.minidom.parseString(svg).getElementsByTagName(name)


class Drawing(unittest.TestCase):
    def test_markup_in_labels_is_escaped(self):
        picture = plot.Picture(100, 50)
        picture.text(1, 2, "a < b & c")
        self.assertEqual(elements(picture.svg(), "text")[0].firstChild.data, "a < b & c")

    def test_the_height_of_a_figure_may_grow(self):
        picture = plot.Picture(100)
        picture.rectangle(0, 0, 5, 6, "red")
        picture.height = 70
        self.assertEqual(elements(picture.svg(), "svg")[0].getAttribute("viewBox"), "0 0 100 70")
        self.assertEqual(picture.svg(), picture.svg())

    def test_axes_place_values_within_the_margins(self):
        axes = plot.Axes(plot.Picture(640, 400), margin=60, x_max=1, y_max=100)
        found = [axes.place(0, 0), axes.place(1, 100), axes.place(0.5, 50)]
        self.assertEqual(found, [(60, 340), (580, 60), (320, 200)])

    def test_colors_are_those_of_the_program(self):
        self.assertEqual(plot.palette()[:2], ["#3182ce", "#d9541e"])
        self.assertEqual(len(set(plot.palette())), 12)

    def test_the_study_draws_two_curves_in_the_order_of_sigma(self):
        table = ["strategy.beta,metric,runs,mean"]
        for beta, *means in (("1e-2", 0.5, 100, 0, 0, 0), ("0", 0.25, 50, 10, 20, 45)):
            table += [f"{beta},{metric},1,{mean}" for metric, mean in
                      zip(("sigma_mean", "task_1", "task_2", "task_3", "task_4"), means)]
        svg = beta_picture.svg(beta_picture.points_of(table))
        lines = [line.getAttribute("points") for line in elements(svg, "polyline")]
        self.assertEqual(lines[1:], ["190.0,200.0 320.0,60.0", "190.0,270.0 320.0,340.0"])
        self.assertEqual(len(elements(svg, "circle")), 4)
        self.assertIn("1e-2", [text.firstChild.data for text in elements(svg, "text")])


if __name__ == "__main__":
    run_tests()
