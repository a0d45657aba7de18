"""mneme report in a headless Chromium: drawn, silent, usable; skipped where there is no Chromium.

$MNEME_AXE may name axe-core's axe.min.js: then its rules hold for the page as well.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import mneme, run_tests  # noqa: E402

BROWSER = next((found for found in map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]) if found), None)
AXE = os.environ.get("MNEME_AXE", "")
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


class Browser:
    """Chromium by its own protocol, over a pair of pipes: messages are JSON, ended by a zero byte."""

    def __init__(self, profile):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        for number in (theirs_in, theirs_out):
            os.set_inheritable(number, True)
        words = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"]
        # The browser expects them as 3 and 4.
        shell = f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}'
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *words], pass_fds=(theirs_in, theirs_out),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.reader, self.writer = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.rest, self.number, self.session, self.events = b"", 0, None, []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def message(self):
        while b"\0" not in self.rest:
            piece = self.reader.read1(1 << 16)
            assert piece, "the browser has ended"
            self.rest += piece
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, **given):
        self.number += 1
        wanted = {"id": self.number, "method": method, "params": given}
        if self.session:
            wanted["sessionId"] = self.session
        self.writer.write(json.dumps(wanted).encode() + b"\0")
        self.writer.flush()
        while True:
            message = self.message()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]
            self.events.append(message)

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def open(self, file):
        self.events = []
        self.ask("Page.navigate", url="file://" + file)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def end(self):
        self.writer.close()
        self.process.wait()
        self.reader.close()


@unittest.skipUnless(BROWSER, "no Chromium")
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
        self.browser.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1,
                         mobile=False)
        self.browser.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.browser.open(self.page)

    def test_twenty_runs_are_drawn_in_silence(self):
        self.assertLess(os.path.getsize(self.page), 5_000_000)
        self.show(1440)
        charts = self.browser.value("Object.fromEntries([...document.querySelectorAll('figure')].map(chart => "
                                    "[chart.id, chart.querySelectorAll('polyline, rect').length]))")
        self.assertEqual(set(charts), {"accuracy-rounds", "accuracy-time", "matrix-1", "matrix-2", "matrix-3",
                                       "matrix-4", "forgetting", "enrolment", "traffic", "staleness", "utilisation"})
        for chart, marks in charts.items():
            self.assertEqual(marks, 15 if chart.startswith("matrix") else 8 if chart == "traffic" else 4, chart)
        said = [event for event in self.browser.events if event["method"] in
                ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]
        self.assertEqual(said, [])
        asked = [event["params"]["request"]["url"] for event in self.browser.events
                 if event["method"] == "Network.requestWillBeSent"]
        self.assertEqual([url for url in asked if not url.startswith(("file://", "data:"))], [])

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
        if not AXE:
            return
        for width in (360, 1440):
            for theme in ("light", "dark"):
                self.show(width, theme)
                with open(AXE, encoding="utf-8") as file:
                    self.browser.value(file.read() + "; 0")
                found = self.browser.value("axe.run().then(result => result.violations.map(rule => "
                                           "rule.id + ': ' + rule.nodes.map(node => node.target).join(' ')))")
                self.assertEqual(found, [], (width, theme))


if __name__ == "__main__":
    run_tests()
