"""tools/research/realtime without a network: comparison of measured and predicted times, profiles from measurements,
and running its scenarios with the times of their profiles."""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, ROOT, run_tests  # noqa: E402

FOLDER = os.path.join(ROOT, "tools", "research", "realtime")
sys.path.insert(0, FOLDER)
import compare  # noqa: E402
import federations  # noqa: E402

LENET_PARAMETERS = 156 + 2416 + 48120 + 10164 + 850


def module_of(name):
    """Loads a program of the folder as a module, without the federated framework that it measures."""
    framework = types.SimpleNamespace(Server=object, ServerConfig=None, SimpleClientManager=None, start_server=None,
                                      FitIns=None, ndarrays_to_parameters=lambda arrays: arrays, History=None)
    path = os.path.join(FOLDER, name)
    loader = importlib.machinery.SourceFileLoader("realtime_" + name.removesuffix(".py"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    with mock.patch.dict(sys.modules, {module_name: framework for module_name in
                                       ("flwr", "flwr.common", "flwr.server", "flwr.server.history")}):
        loader.exec_module(module)
    return module


def answer(client, of_round, asked_s, answered_s):
    return {"client": client, "round": of_round, "asked_s": asked_s, "answered_s": answered_s}


class Comparison(unittest.TestCase):
    MEASURED = {"rounds": [{"round": 1, "opened_s": 0.0, "closed_s": 4.0, "server_s": 0.25},
                           {"round": 2, "opened_s": 4.0, "closed_s": 9.0, "server_s": 0.5}],
                "answers": [answer(0, 1, 0.0, 4.0), answer(1, 1, 0.0, 2.0), answer(0, 2, 4.0, 6.0),
                            answer(1, 2, 4.0, 9.0)]}
    SAID = {"rounds": [{"round": 1, "opened_s": 0.0, "closed_s": 5.0}, {"round": 2, "opened_s": 5.0, "closed_s": 9.0}],
            "answers": [answer(1, 1, 0.0, 1.0), answer(0, 1, 0.0, 5.0), answer(1, 2, 5.0, 8.0), answer(0, 2, 5.0, 9.0)]}

    def test_errors_of_run_rounds_and_replies_are_computed(self):
        errors = compare.compared(self.MEASURED, self.SAID)
        self.assertEqual(errors["rounds"], 2)
        self.assertEqual(errors["measured_s"], 9.0)
        self.assertEqual(errors["predicted_s"], 9.0)
        self.assertEqual(errors["run_error"], 0.0)
        self.assertEqual([round(error, 12) for error in errors["round_errors"]], [0.25, -0.2])
        self.assertAlmostEqual(errors["round_error_median"], 0.225)
        # Client 0: 5 s for 4 s and 4 s for 2 s; client 1: 1 s for 2 s and 3 s for 5 s.
        self.assertAlmostEqual(errors["answer_error_median"], (0.4 + 0.5) / 2)
        self.assertEqual((errors["equal_orders"], errors["orders"]), (1, 2))
        self.assertEqual(errors["server_s"], 0.75)

    def test_an_interrupted_run_is_compared_up_to_its_end(self):
        cut = {"rounds": self.SAID["rounds"][:1], "answers": self.SAID["answers"][:2]}
        errors = compare.compared(self.MEASURED, cut)
        self.assertEqual((errors["rounds"], errors["measured_s"], errors["server_s"]), (1, 4.0, 0.25))
        self.assertEqual(errors["equal_orders"], 1)

    def test_the_table_has_a_line_for_each_client(self):
        lines = compare.table(compare.compared(self.MEASURED, self.SAID), self.MEASURED, self.SAID).splitlines()
        self.assertEqual(lines[2], "| 2 | 9.00 s | 9.00 s | +0.0 % | 22.5 % | 45.0 % | 1 of 2 "
                                   "| 1 of 2 | 0 of 0 | 3 of 4 | 0.75 s |")
        self.assertEqual(lines[-2:], ["| 0 | 2 | 3.00 s | 4.50 s | +50.0 % |", "| 1 | 2 | 3.50 s | 2.00 s | -42.9 % |"])


    def test_pairs_are_settled_if_the_real_federation_repeats_their_order(self):
        """Clients 0 and 1 swap positions in one of ten rounds, 2 and 3 in two; 4 and 5 take part in only three."""
        real = {number: [1, 0, 2, 3] for number in range(10)}
        real[7], real[8], real[9] = [0, 1, 2, 3], [1, 0, 3, 2], [1, 0, 3, 2]
        for number in range(3):
            real[number] = real[number] + [4, 5]
        said = {number: [1, 0, 2, 3, 5, 4] for number in range(10)}
        # Settled: 0 with 1, and the four pairs of one of {0, 1} with one of {2, 3}, in ten rounds each. The others:
        # 2 with 3 in ten rounds, and nine pairs with 4 or 5 in three, of which 4 with 5 is predicted wrongly.
        self.assertEqual(compare.pairs(real, said), (50, 49, 10 + 27, 8 + 24))
        self.assertEqual(compare.pairs(real, {}), (0, 0, 0, 0))

    def test_the_most_frequent_real_order_is_counted(self):
        third = {"round": 3, "opened_s": 9.0, "closed_s": 12.0, "server_s": 0.0}
        measured = {"rounds": [*self.MEASURED["rounds"], third],
                    "answers": [*self.MEASURED["answers"], answer(0, 3, 9.0, 12.0), answer(1, 3, 9.0, 10.0)]}
        self.assertEqual(compare.compared(measured, self.SAID)["most_frequent_order"], 2)

    def test_common_subsequences_are_counted_over_rounds(self):
        real = [answer(client, place, 0.0, place + 1.0) for place, client in enumerate((2, 0, 1, 2, 0))]
        said = [answer(client, place, 0.0, place + 1.0) for place, client in enumerate((0, 2, 1, 0, 2, 0))]
        self.assertEqual(compare.in_sequence(real, said), 4)  # 2, 1, 2, 0 or 0, 1, 2, 0
        self.assertEqual(compare.in_sequence(real, []), 0)


class Calibration(unittest.TestCase):
    def test_a_profile_follows_from_the_medians_of_answers(self):
        """Recovers a start of 0.02 s, links of 10 and 20 Mbit/s, 50 rows per second and 0.3 s per job."""
        calibrate = module_of("calibrate.py")
        bits = 8.0 * 1_000_000
        calibrate.arrays_of = lambda kind: [types.SimpleNamespace(nbytes=size) for size in (400_000, 600_000)]
        server = calibrate.CalibratingServer.__new__(calibrate.CalibratingServer)
        server.kind, disturbed = "lenet", iter(range(1000))

        def asked(proxy, parameters, reply, rows):
            rows = 300 if rows < 0 else rows
            job_s = 0.3 + rows / 50.0 if rows else 0.0
            taken = 0.02 + job_s + (bits / 20e6 if parameters else 0.0) + (bits / 10e6 if reply else 0.0)
            if next(disturbed) % 5 == 0:
                taken, job_s = 3.0 * taken, 3.0 * job_s
            return taken, job_s, 7, 300

        server.asked = asked
        number, profile = server.profile_of(None)
        self.assertEqual(number, 7)
        expected = {"round_start_s": 0.02, "job_start_s": 0.3, "rows_per_second": 50.0, "downlink_mbit": 20.0,
                    "uplink_mbit": 10.0}
        self.assertEqual(profile.keys(), expected.keys())
        for key, value in expected.items():
            self.assertAlmostEqual(profile[key], value, places=9, msg=key)


class Scenarios(unittest.TestCase):
    def test_shares_links_and_rows_are_spread_over_clients(self):
        for kind, of in federations.FEDERATIONS.items():
            clients = federations.clients_of(kind, 4)
            self.assertEqual(sorted(client["share"] for client in clients), [0.1, 0.233, 0.367, 0.5])
            uplinks = [client["uplink_mbit"] for client in clients]
            self.assertEqual((min(uplinks), max(uplinks)), of["mbit"])
            for client in clients:
                self.assertAlmostEqual(client["downlink_mbit"], 1.5 * client["uplink_mbit"], delta=0.05)

    def predicted(self, rows_per_second, concurrency=0):
        """Returns mneme's prediction for two rounds of three LeNet clients, and their rows."""
        run = module_of("run")
        clients = federations.clients_of("lenet", 3)
        measured = {"round_start_s": 0.02, "job_start_s": 0.3, "rows_per_second": rows_per_second,
                    "downlink_mbit": 20.0, "uplink_mbit": 10.0}
        with tempfile.TemporaryDirectory() as folder:
            given = argparse.Namespace(federation="lenet", out=folder, rounds=2, deadline=100.0, delay_ms=0,
                                       concurrency=concurrency, program=PROGRAM, python=sys.executable)
            counted = subprocess.CompletedProcess([], 0, stdout=f"{LENET_PARAMETERS}\n")
            started = subprocess.run
            with mock.patch.object(run.subprocess, "run", lambda words, **how: counted if words[0] == sys.executable
                                   else started(words, **how)):
                run.predict(given, clients, [measured] * 3)
            with open(os.path.join(folder, "asked.json"), encoding="utf-8") as file:
                asked = json.load(file)
            return compare.predicted(folder), [client["rows"] for client in clients], asked

    def test_round_durations_follow_from_profiles_and_links(self):
        said, rows, asked = self.predicted(100.0)
        self.assertEqual(sorted(asked), [0, 0, 1, 1, 2, 2])
        model_s = 4 * LENET_PARAMETERS * 8 / 1e6
        for (client, _), taken in compare.nth_answers(said["answers"]).items():
            expected = 0.02 + model_s / 20.0 + 0.3 + rows[client] / 100.0 + model_s / 10.0
            self.assertAlmostEqual(taken, expected, delta=0.002, msg=str(client))
        slowest = 0.32 + model_s * 0.15 + max(rows) / 100.0
        self.assertEqual([round["round"] for round in said["rounds"]], [1, 2])
        for length in compare.lengths(said["rounds"]):
            self.assertAlmostEqual(length, slowest, delta=0.002)

    def test_asynchronous_clients_get_requests_one_after_the_other(self):
        said, _, asked = self.predicted(100.0, concurrency=1)
        self.assertGreaterEqual(len(asked), 2)
        answers = sorted(said["answers"], key=lambda answered: answered["asked_s"])
        for before, after in zip(answers, answers[1:]):
            self.assertGreaterEqual(after["asked_s"], before["answered_s"])


if __name__ == "__main__":
    run_tests()
