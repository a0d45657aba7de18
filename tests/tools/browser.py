"""A headless Chromium for tests, controlled by the DevTools protocol.

$MNEME_AXE may name axe-core's axe.min.js; then pages are checked by its rules, too.
"""
import json
import os
import shutil
import subprocess
import unittest

BROWSER = next((found for found in map(shutil.which, ["chromium", "chromium-browser", "google-chrome"]) if found), None)
AXE = os.environ.get("MNEME_AXE", "")


class Browser:
    """Chromium, controlled over a pair of pipes: messages are JSON, terminated by a zero byte."""

    def __init__(self, profile):
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        for number in (theirs_in, theirs_out):
            os.set_inheritable(number, True)
        words = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"]
        # The browser expects descriptors 3 and 4.
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

    def open(self, address):
        self.events = []
        self.ask("Page.navigate", url=address)
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())

    def size(self, width, theme="light"):
        """Sets the window size and the color preference."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])

    def press(self, key):
        """Presses a key that types no character, by its `KeyboardEvent.key`."""
        code = {"Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39}[key]
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def point_at(self, selector, across=0.5, down=0.5):
        """Moves the pointer into the first matching element; `across` and `down` are shares of its size."""
        box = self.value("(async () => { const part = document.querySelector('%s'); "
                         "part.scrollIntoView({block: 'center'}); "
                         "await new Promise(wake => requestAnimationFrame(() => requestAnimationFrame(wake))); "
                         "const box = part.getBoundingClientRect(); return [box.x, box.y, box.width, box.height]; })()"
                         % selector)
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + across * box[2], y=box[1] + down * box[3])

    def complaints(self):
        """Console messages of the page since it was opened."""
        return [event for event in self.events if event["method"] in
                ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")]

    def asked(self):
        """URLs that the page has requested since it was opened."""
        return [event["params"]["request"]["url"] for event in self.events
                if event["method"] == "Network.requestWillBeSent"]

    def violations(self):
        """Findings of axe-core; empty if it is not installed."""
        if not AXE:
            return []
        with open(AXE, encoding="utf-8") as file:
            self.value(file.read() + "; 0")
        return self.value("axe.run().then(result => result.violations.map(rule => "
                          "rule.id + ': ' + rule.nodes.map(node => node.target).join(' ')))")

    def end(self):
        self.writer.close()
        self.process.wait()
        self.reader.close()


def needs_browser(test):
    """Skips a test class if there is no Chromium."""
    return unittest.skipUnless(BROWSER, "no Chromium")(test)
