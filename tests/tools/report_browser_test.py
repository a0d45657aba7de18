"""mneme report in a headless Chromium: drawn, silent, usable; skipped where there is no Chromium."""
import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, needs_browser  # noqa: E402
from program import mneme, run_tests  # noqa: E402

SCENARIO = """[data]
name = "synthetic"
shape = [8]
classes = 10
rows = 400
[tasks]
count = 5
[clients]
count = 4
[rounds]
per_task = 4
mode = "async"
buffer = 2
[model]
name = "linear"
[strategy]
name = "fedavg"
"""


@needs_browser
class ReportBrowserTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="mneme-browser-")
        with open(os.path.join(cls.folder, "a.toml"), "w", encoding="utf-8") as file:
            file.write(SCENARIO)
        runs, cls.page = os.path.join(cls.folder, "runs"), os.path.join(cls.folder, "report.html")
        done = mneme("sweep", os.path.join(cls.folder, "a.toml"), "--seeds", "1-5", "--quiet", "--out", runs,
                     "--over", "training.learning_rate=0.1,0.03,0.01,0.003")
        assert done.returncode == 0, done.stderr
        done = mneme("report", runs, "-o", cls.page)
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser = Browser(os.path.join(self.folder, "profile"))
        self.addCleanup(self.browser.end)

    def show(self, width, theme="light"):
        self.browser.size(width, theme)
        self.browser.open("file://" + self.page)

    def test_twenty_runs_are_drawn_in_silence(self):
        self.assertLess(os.path.getsize(self.page), 5_000_000)
        self.show(1440)
        charts = self.browser.value("Object.fromEntries([...document.querySelectorAll('figure')].map(chart => "
                                    "[chart.id, chart.querySelectorAll('polyline, rect').length]))")
        self.assertEqual(set(charts), {"accuracy-rounds", "accuracy-time", "matrix-1", "matrix-2", "matrix-3",
                                       "matrix-4", "forgetting", "enrolment", "traffic", "staleness", "utilisation"})
        for chart, marks in charts.items():
            self.assertEqual(marks, 15 if chart.startswith("matrix") else 8 if chart == "traffic" else 4, chart)
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.asked() if not url.startswith(("file://", "data:"))], [])

    def test_it_fits_narrow_and_wide_pages_in_dark_and_light(self):
        for width in (360, 1440):
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    self.show(width, theme)
                    self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
                    colour = self.browser.value("getComputedStyle(document.body).backgroundColor")
                    self.assertEqual(colour, "rgb(255, 255, 255)" if theme == "light" else "rgb(22, 22, 22)")
                    drawn = self.browser.value("getComputedStyle(document.querySelector('figure svg')).color")
                    self.assertNotEqual(drawn, colour)

    def test_it_can_be_used_by_keyboard(self):
        self.show(1440)
        press = ["keyDown", "keyUp"]
        reached = []
        for _ in range(8):
            for kind in press:
                self.browser.ask("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab", windowsVirtualKeyCode=9)
            reached.append(self.browser.value("document.activeElement.tagName + (document.activeElement.value || '')"))
        self.assertEqual(reached[:5], ["BUTTON", "INPUT0", "INPUT1", "INPUT2", "INPUT3"])
        self.browser.value("document.querySelector('.legend input').focus()")
        for kind in press:
            self.browser.ask("Input.dispatchKeyEvent", type=kind, key=" ", code="Space", windowsVirtualKeyCode=32,
                             text=" " if kind == "keyDown" else "")
        shown = "[...document.querySelectorAll('g[data-group=\"%d\"]')].every(mark => mark.style.display !== 'none')"
        self.assertFalse(self.browser.value(shown % 0))
        self.assertTrue(self.browser.value(shown % 1))
        before = self.browser.value("getComputedStyle(document.body).backgroundColor")
        self.browser.value("document.getElementById('theme').click()")
        self.assertNotEqual(self.browser.value("getComputedStyle(document.body).backgroundColor"), before)

    def test_everything_that_is_seen_is_named(self):
        self.show(1440)
        self.assertEqual(self.browser.value(
            "[...document.querySelectorAll('svg, input, [role=region]')].filter(thing => !(thing.getAttribute("
            "'aria-label') || thing.closest('label') || document.getElementById((thing.getAttribute('aria-labelledby') "
            "|| '').split(' ')[0])?.textContent)).length"), 0)
        for width in (360, 1440):
            for theme in ("light", "dark"):
                self.show(width, theme)
                self.assertEqual(self.browser.violations(), [], (width, theme))


if __name__ == "__main__":
    run_tests()
