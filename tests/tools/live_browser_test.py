"""The page of mneme run --serve in a headless Chromium: it follows the run, and open sections stay open."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser, needs_browser  # noqa: E402
from program import PROGRAM, ROOT, needs_pages, run_tests  # noqa: E402

setUpModule = needs_pages

SMOKE = os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml")
CURVE = "document.querySelector('#accuracy-rounds polyline').getAttribute('points')"
STATE = "document.getElementById('state').textContent"
NO_TOOLTIP = r"!/^round \d+\n/.test(document.getElementById('tooltip').innerText)"


@needs_browser
class LiveBrowserTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mneme-live-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.run_ = subprocess.Popen([PROGRAM, "run", SMOKE, "--quiet", "--threads", "1", "--out",
                                      os.path.join(self.folder, "run"), "--set", "rounds.per_task=1000000", "--set",
                                      "evaluation.every=1", "--serve", "0"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.run_.stderr.close)
        self.addCleanup(self.run_.wait)
        self.addCleanup(self.run_.kill)
        self.address = re.search(r"http://127\.0\.0\.1:\d+/", self.run_.stderr.readline()).group(0)
        self.browser = Browser(os.path.join(self.folder, "profile"))
        self.addCleanup(self.browser.end)

    def show(self, width, theme="light"):
        self.browser.size(width, theme)
        self.browser.open(self.address)
        self.wait_while("!document.querySelector('#accuracy-rounds polyline')")

    def wait_while(self, condition, first=""):
        """Fails after a minute. The page handles input events later than the browser confirms them."""
        self.browser.value("(async () => { %s const end = Date.now() + 60000; while (%s) { if (Date.now() > end) throw "
                           "Error('no change'); await new Promise(wake => setTimeout(wake, 20)); } })()"
                           % (first, condition))

    def wait_for_change(self):
        self.wait_while(f"{CURVE} === before", first=f"const before = {CURVE};")

    def test_the_live_page_follows_the_run_and_reports_its_end(self):
        self.show(1440)
        self.wait_for_change()
        charts = self.browser.value("Object.fromEntries([...document.querySelectorAll('figure')].map(chart => "
                                    "[chart.id, chart.querySelectorAll('polyline, rect').length]))")
        self.assertLessEqual({"accuracy-rounds", "accuracy-time", "accuracy-tasks-1", "uploads"}, set(charts))
        self.assertGreater(min(charts.values()), 0, charts)
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.asked() if not url.startswith((self.address, "data:"))], [])
        self.assertIn("FedAvg", self.browser.value("document.querySelector('h1').innerText"))
        self.assertRegex(self.browser.value("document.title"), r"^0 % ")
        self.assertRegex(self.browser.value("document.getElementById('progress').innerText"),
                         r"^running: round \d+ of [1-9]000000, task 1 of \d, .* elapsed, about .* left; "
                         r"accuracy [\d.]+ %; virtual time ")
        self.run_.terminate()
        self.run_.wait()
        self.wait_while("!" + STATE)
        self.assertEqual(self.browser.value(STATE), "This run is no longer served; the page shows its last state.")
        self.assertRegex(self.browser.value("document.getElementById('progress').innerText"),
                         r"^interrupted: round \d+ ")
        self.assertGreater(self.browser.value("document.querySelectorAll('#accuracy-tasks-1 polyline').length"), 1)
        self.browser.point_at("#accuracy-rounds svg")
        self.wait_while(NO_TOOLTIP)
        self.assertEqual(self.browser.complaints(), [])

    def test_the_page_of_a_killed_run_reports_its_last_update(self):
        self.show(1440)
        self.run_.kill()
        self.run_.wait()
        self.wait_while("!" + STATE)
        self.assertRegex(self.browser.value(STATE),
                         r"^This run has not been served since .*; the page shows its last known state\.$")
        self.assertGreater(self.browser.value("document.querySelectorAll('figure svg').length"), 3)

    def test_selections_survive_page_updates(self):
        self.show(1440)
        last = "[...document.querySelectorAll('main > details')].at(-1)"
        self.browser.value(f"{last}.open = true; {last}.querySelector('summary').focus(); 0")
        self.wait_for_change()
        kept = self.browser.value(f"[{last}.open, document.activeElement.tagName]")
        self.assertEqual(kept, [True, "SUMMARY"])
        self.browser.value("document.querySelector('#accuracy-rounds svg').focus()")
        self.browser.press("ArrowRight")
        self.wait_for_change()
        self.assertEqual(self.browser.value("document.activeElement.closest('figure').id"), "accuracy-rounds")
        self.browser.press("ArrowRight")
        self.wait_while(NO_TOOLTIP)

    def test_the_live_page_fits_narrow_and_wide_windows_without_accessibility_errors(self):
        for width in (360, 1440):
            for theme in ("light", "dark"):
                with self.subTest(width=width, theme=theme):
                    self.show(width, theme)
                    self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), width)
                    self.assertEqual(self.browser.violations(), [])


if __name__ == "__main__":
    run_tests()
