"""The federation in mneme: its files, its runs, and nodes that respond early and late."""
import json
import os
import signal
import subprocess
import sys
import threading
import time

from federation import BATCH, CLASSES, CLIENTS, LEARNING_RATE, ROWS, SEED, rows

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fuzz"))
from free_port import free_port  # noqa: E402

SCENARIO = f"""title = "What tools/research/repeats compares"
seed = {SEED}
[data]
name = "arrays"
file = "rows.npz"
[tasks]
kind = "single"
[partition]
kind = "file"
file = "clients.csv"
[clients]
count = {CLIENTS}
[rounds]
per_task = ROUNDS
cohort = {CLIENTS}
[model]
name = "lenet"
[training]
batch = {BATCH}
epochs = 1
learning_rate = {LEARNING_RATE}
[evaluation]
every = 0
[checkpoint]
every = 1
force = true
[strategy]
name = "fedavg"
"""


def write_files(folder, rounds):
    """Writes the scenario and its rows. Returns the path of the scenario."""
    import numpy
    pictures, labels = rows()
    numpy.savez(os.path.join(folder, "rows.npz"), train_x=pictures, train_y=labels, test_x=pictures[:CLASSES * 8],
                test_y=labels[:CLASSES * 8])
    with open(os.path.join(folder, "clients.csv"), "w", encoding="ascii") as file:
        file.write("client,row\n" + "".join(f"{row // ROWS},{row}\n" for row in range(CLIENTS * ROWS)))
    path = os.path.join(folder, "scenario.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(SCENARIO.replace("ROUNDS", str(rounds)))
    return path


def digest_of(folder):
    with open(os.path.join(folder, "summary.json"), encoding="utf-8") as file:
        return json.load(file)["run_digest"]


def free_address():
    return f"127.0.0.1:{free_port()}"


class SlowNode:
    """Node process that is stopped repeatedly while the other one works: `share` of the time."""

    def __init__(self, program, address, share):
        self.process = subprocess.Popen([program, "node", "--join", address, "--threads", "1"],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.share, self.ended = share, False
        self.holder = threading.Thread(target=self.hold, daemon=True)
        self.holder.start()

    def hold(self, turn_s=0.1):
        while not self.ended:
            for held, seconds in ((True, turn_s * self.share), (False, turn_s * (1.0 - self.share))):
                if seconds > 0.0:
                    self.process.send_signal(signal.SIGSTOP if held else signal.SIGCONT)
                    time.sleep(seconds)

    def end(self):
        self.ended = True
        self.holder.join()
        self.process.kill()
        self.process.wait()
