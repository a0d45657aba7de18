"""Nodes that stay while a search sends them one run after the other."""
import os
import re
import subprocess
import time

NODE_LIMIT_S = 20


class StartedNode:
    def __init__(self, program, folder, number, words=()):
        self.log, self.runs, self.fault = os.path.join(folder, f"node{number}.log"), 0, None
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([program, "node", "--listen", "127.0.0.1:0", "--threads", "1", *words],
                                            stdout=out, stderr=subprocess.STDOUT)
        self.port = int(self._said(r"listening on \S*:(\d+)", 1)[0])
        self.address = f"127.0.0.1:{self.port}"

    def await_next_run(self):
        """Its run is over: it waits for another."""
        self.runs += 1
        try:
            self._said("waits for the next run", self.runs)
        except TimeoutError as why:
            self.fault = str(why)

    def has_ended(self):
        return self.process.poll() is not None

    def last_words(self):
        with open(self.log, "rb") as file:
            return file.read()[-500:].decode("utf-8", "replace")

    def _said(self, pattern, count):
        until = time.monotonic() + NODE_LIMIT_S
        while time.monotonic() < until and self.process.poll() is None:
            with open(self.log, "rb") as file:
                text = file.read().decode("utf-8", "replace")
            if len(found := re.findall(pattern, text)) >= count:
                return found
            time.sleep(0.01)
        raise TimeoutError(f"the node (code {self.process.poll()}) never said '{pattern}' for the {count}. time")

    def end(self):
        self.process.kill()
        self.process.wait()
