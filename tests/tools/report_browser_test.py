"""mneme report in a headless Chromium: the page renders without errors and is usable. Skipped without Chromium."""
import os
import re
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

    def test_a_report_of_twenty_runs_has_no_console_messages(self):
        self.assertLess(os.path.getsize(self.page), 5_000_000)
        self.show(1440)
        charts = self.browser.value("Object.fromEntries([...document.querySelectorAll('figure')].map(chart => "
                                    "[chart.id, chart.querySelectorAll('polyline, rect').length]))")
        expected = {f"{chart}-{group}": marks for group in range(1, 5)
                    for chart, marks in (("matrix", 15), ("accuracy-tasks", 6), ("classes", 30))}
        expected |= {chart: 4 for chart in ("accuracy-rounds", "accuracy-time", "training-loss", "uploads", "downloads",
                                            "staleness", "utilization")}
        self.assertEqual(charts, {**expected, "forgetting": 16})
        self.assertIn("Clients enrolled: 4 clients at all times.", self.browser.value("document.body.innerText"))
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.asked() if not url.startswith(("file://", "data:"))], [])

    def test_the_report_fits_narrow_and_wide_windows_in_dark_and_light(self):
        for width in (360, 1440):
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    self.show(width, theme)
                    self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
                    color = self.browser.value("getComputedStyle(document.body).backgroundColor")
                    self.assertEqual(color, "rgb(255, 255, 255)" if theme == "light" else "rgb(22, 22, 22)")
                    drawn = self.browser.value("getComputedStyle(document.querySelector('figure svg')).color")
                    self.assertNotEqual(drawn, color)

    def test_the_report_can_be_used_by_keyboard(self):
        self.show(1440)
        press = ["keyDown", "keyUp"]
        reached = []
        for _ in range(8):
            self.browser.press("Tab")
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

    def told(self):
        return self.browser.value("document.getElementById('tooltip').hidden ? '' : "
                                  "document.getElementById('tooltip').innerText").split("\n")

    def test_values_appear_at_the_pointer_and_by_arrow_keys(self):
        self.show(1440)
        drawn = "document.querySelector('#accuracy-rounds .curve').dataset.values.split(';')[%d].split(',')"
        self.browser.point_at("#accuracy-rounds svg", across=542 / 560)  # the last round
        said = self.told()
        first = self.browser.value("document.querySelector('#accuracy-rounds .curve').dataset.name")
        last = self.browser.value(drawn % 19)
        self.assertEqual(said[0], "round 20")
        self.assertEqual(len(said), 5)  # the round and four groups
        short = [f"{float(value):.5g}" for value in last]
        self.assertEqual(said[1], f"{first}: {short[1]} ({short[2]} to {short[3]})")
        self.browser.point_at("#matrix-1 rect")
        self.assertRegex(self.told()[0], r"^after task 1, task 1: [\d.]+$")
        self.browser.point_at("#forgetting rect")
        self.assertRegex(self.told()[0], rf"^task 1, {re.escape(first)}: -?[\d.]+")
        self.browser.press("Escape")
        self.assertEqual(self.told(), [""])
        self.browser.value("document.querySelector('#accuracy-rounds svg').focus()")
        for _ in range(3):
            self.browser.press("ArrowRight")
        self.assertEqual(self.told()[0], "round 3")
        self.browser.value("new Promise(done => { addEventListener('scroll', () => requestAnimationFrame(done), "
                           "{once: true}); scrollBy(0, 40); })")
        self.assertEqual(self.told()[0], "round 3")
        self.browser.value("document.querySelectorAll('.legend input').forEach(choice => choice.click())")
        self.assertFalse(self.browser.value("[...document.querySelectorAll('#matrix-1, #accuracy-tasks-2')].some("
                                            "figure => figure.style.display !== 'none')"))
        self.assertEqual(self.browser.complaints(), [])

    def test_the_legend_stays_visible_and_digests_expand(self):
        for width in (360, 1440):
            self.show(width)
            self.browser.value("document.querySelector('#utilization').scrollIntoView({block: 'end'})")
            self.assertEqual(self.browser.value("document.querySelector('.legend').getBoundingClientRect().top"), 0)
            self.assertLess(self.browser.value("document.querySelector('.legend').getBoundingClientRect().height"), 300)
        digest = "document.querySelector('td details')"
        self.assertEqual(self.browser.value(digest + ".innerText.length"), 8)
        self.browser.value(digest + ".open = true; 0")
        self.assertEqual(self.browser.value(digest + ".querySelector('code').innerText.length"), 32)

    def test_every_visible_element_has_an_accessible_name(self):
        self.show(1440)
        self.assertEqual(self.browser.value(
            "[...document.querySelectorAll('svg:not([aria-hidden]), input, [role=region]')].filter(thing => "
            "!(thing.getAttribute('aria-label') || thing.closest('label') || "
            "document.getElementById((thing.getAttribute('aria-labelledby') || '').split(' ')[0])?.textContent))"
            ".length"), 0)
        for width in (360, 1440):
            for theme in ("light", "dark"):
                self.show(width, theme)
                self.assertEqual(self.browser.violations(), [], (width, theme))


if __name__ == "__main__":
    run_tests()
