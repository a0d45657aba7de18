"""Kills runs of several methods dozens of times at random moments: after resuming, each ends like an
uninterrupted run."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import run_tests  # noqa: E402
from resuming import Torture  # noqa: E402

# A scenario, overrides that make it take a few seconds, and the number of kills.
SCENARIOS = [
    ("smoke/fedavg.toml", ["rounds.per_task=60"], 20),
    ("smoke/fedprox.toml", ["rounds.per_task=120"], 15),  # late uploads that are kept
    ("smoke/fed-ewc.toml", ["rounds.per_task=20"], 10),  # clients with two stages
    ("smoke/module.toml", ["rounds.per_task=60"], 10),
    ("smoke/lga.toml", ["tasks.count=2", "strategy.reconstruction_steps=60"], 10),  # programs and a proxy
    ("smoke/stsa.toml", ["strategy.adaptation_rounds=60"], 15),
    ("smoke/async.toml", ["rounds.per_task=60"], 15),  # FedBuff; clients join, leave and drop out during work
    ("smoke/fedasync.toml", ["rounds.per_task=60"], 10),
    ("smoke/fil-ver.toml", ["rounds.per_task=60"], 15),
    ("smoke/fil-ver.toml", ["rounds.per_task=60", "rounds.mode=async", "rounds.buffer=4"], 15),
    ("smoke/devices.toml", ["rounds.per_task=40"], 15),  # shared links, traces and profiles
    ("smoke/devices.toml", ["rounds.per_task=40", "rounds.mode=async", "rounds.buffer=2", "rounds.concurrency=5"], 15),
]
KILLS_OF_RUN = 10


class KilledRuns(unittest.TestCase):
    def tortured(self, scenario, settings, kills):
        with tempfile.TemporaryDirectory() as folder:
            Torture(self, folder, scenario, settings).kill(kills, KILLS_OF_RUN)

    def test_fifty_kills_keep_the_digest(self):
        self.assertGreaterEqual(sum(kills for _, _, kills in SCENARIOS), 50)


def add(scenario, settings, kills):
    mode = "_async" if "rounds.mode=async" in settings else ""
    name = "test_" + "".join(letter if letter.isalnum() else "_" for letter in scenario) + mode
    setattr(KilledRuns, name, lambda self: self.tortured(scenario, settings, kills))


for line in SCENARIOS:
    add(*line)

if __name__ == "__main__":
    run_tests()
