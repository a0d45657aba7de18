"""Exceptions of a method's code, in any call, end the run with a failure that names the location."""
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
from forked_program import completed  # noqa: E402
from python_package import scenario  # noqa: E402

FLOW = {"rounds": {"mode": "async", "buffer": 3, "concurrency": 6, "per_task": 6}}


class Asks(mneme.Method):
    """FedAvg whose server reads `place` in every call."""
    name = "py-asks"

    class Server(mneme.AveragingServer):
        rounds = 0

        def fold(self, upload):
            self.rounds += self.place.round
            super().fold(upload)

        def predict(self):
            return self.weights + 0 * self.place.round

        def summary_metrics(self):
            return {"rounds_seen": self.rounds + self.place.round}

        def state(self):
            return {"rounds": self.rounds, "seen": self.place.round}

        def restore(self, state):
            self.rounds = state["rounds"]
            assert self.place.round == state["seen"]


class AsksAlone(mneme.Method):
    """Like Asks, with a server that is entirely in Python."""
    name = "py-asks-alone"

    class Server(mneme.Server):
        def __init__(self, method):
            super().__init__(method)
            self.sum, self.count = 0 * self.weights.double(), 0

        def fold(self, upload):
            self.sum = self.sum + upload.weights.double() * (1 + self.place.round % 2)
            self.count += 1 + self.place.round % 2

        def close_round(self):
            self.weights = (self.sum / self.count).float()
            self.sum, self.count = 0 * self.sum, 0

        def predict(self):
            return self.weights + 0 * self.place.task


ALL = [Asks, AsksAlone]


class Stops(Asks):
    """Like Asks, but the client half interrupts the process once, in the second round."""
    name = "py-stops"

    def client_round(self, ctx, broadcast):
        if ctx.place.round == 1 and os.path.exists(os.environ["MNEME_TEST_STOP"]):
            os.remove(os.environ["MNEME_TEST_STOP"])
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)  # until the run has handled the signal
        trained = yield ctx.train()
        return mneme.Upload(trained.weights, rows=trained.rows)


class GoingOn(unittest.TestCase):
    def test_a_run_interrupted_during_a_round_resumes(self):
        with tempfile.TemporaryDirectory() as folder:
            stop = os.environ["MNEME_TEST_STOP"] = os.path.join(folder, "stop")
            whole = mneme.run(scenario("py-stops"), methods=[Stops], out=os.path.join(folder, "whole"))
            with open(stop, "w", encoding="utf-8"):
                pass
            with self.assertRaises(mneme.Interrupted) as caught:
                mneme.run(scenario("py-stops"), methods=[Stops], out=os.path.join(folder, "stopped"))
            self.assertEqual(len(mneme.load(caught.exception.folder).records), 1)  # of 6
            resumed = mneme.resume(caught.exception.folder, methods=[Stops])
            self.assertEqual((resumed.status, resumed.digest), ("done", whole.digest))

    def test_a_run_interrupted_while_clients_work_resumes(self):
        for method in ALL:
            for stop_after in (1, 3):
                with self.subTest(f"{method.name} {stop_after}"), tempfile.TemporaryDirectory() as folder:
                    chosen = scenario(method.name, **FLOW)
                    whole = mneme.run(chosen, methods=ALL, out=os.path.join(folder, "whole"))
                    seen = []

                    def stop(record, seen=seen, stop_after=stop_after):
                        seen.append(record)
                        if len(seen) == stop_after:
                            raise LookupError("enough")
                    stopped = os.path.join(folder, "stopped")
                    with self.assertRaises(LookupError) as caught:
                        mneme.run(chosen, methods=ALL, out=stopped, on_evaluation=stop)
                    if mneme.load(stopped).status != "done":
                        self.assertIn("mneme.resume(", str(caught.exception.__notes__))
                    resumed = mneme.resume(stopped, methods=ALL)
                    self.assertEqual((resumed.status, resumed.digest), ("done", whole.digest))


HOOKS = """
import os, sys, tempfile
import mneme
from python_package import scenario

def helper():
    raise LookupError("of the user")

def failing(hook, base, count=1):
    calls = []
    def fails(self, *given):
        calls.append(hook)
        if len(calls) >= count:
            helper()
        return getattr(super(Server, self), hook)(*given)
    Server = type("Server", (base,), {hook: fails})
    if base is mneme.Server:
        plain = {"fold": lambda self, upload: None, "close_round": lambda self: None}
        Server = type("Server", (base,), {**plain, hook: fails})
    return type("Failing", (mneme.Method,), {"name": "py-failing", "Server": Server})

def of_method(hook):
    def fails(self):
        helper()
    return type("Failing", (mneme.Method,), {"name": "py-failing", hook: fails})

def of_restore():
    class Failing(mneme.Method):
        name = "py-failing"
        class Server(mneme.AveragingServer):
            def restore(self, state):
                helper()
    return Failing

def told(run):
    try:
        run()
        return "no failure"
    except mneme.RunFailed as error:
        assert isinstance(error.__cause__, LookupError), error.__cause__
        assert "in helper" in error.traceback and "LookupError: of the user" in error.traceback, error.traceback
        return f"RunFailed {str(error)}".replace(chr(10), " ")

chosen = scenario("py-failing", evaluation={"fairness": True})
with tempfile.TemporaryDirectory() as folder:
    out = lambda name: os.path.join(folder, name)
    for base in (mneme.AveragingServer, mneme.Server):
        for hook in ("__init__", "open_round", "fold", "close_round", "predict", "summary_metrics", "state"):
            name = f"{base.__name__}.{hook}"
            print(name, told(lambda: mneme.run(chosen, methods=[failing(hook, base)], out=out(name))), flush=True)
    for hook in ("prepare", "check"):
        print(hook, told(lambda: mneme.run(chosen, methods=[of_method(hook)], out=out(hook))), flush=True)
    count = 0
    def stop(record):
        raise InterruptedError
    try:
        mneme.run({**chosen, "rounds": {"per_task": 200, "cohort": 6}}, methods=[of_restore()], out=out("restore"),
                  on_evaluation=stop)
    except InterruptedError:
        pass
    print("restore", told(lambda: mneme.resume(out("restore"), methods=[of_restore()])), flush=True)
print("alive")
"""


class Hooks(unittest.TestCase):
    def test_an_exception_in_any_user_function_ends_the_run_cleanly(self):
        said = subprocess.run([sys.executable, "-c", HOOKS], capture_output=True, text=True, check=False, timeout=300)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        lines = said.stdout.splitlines()
        self.assertEqual(lines[-1], "alive")
        self.assertEqual(len(lines), 18)
        for line in lines[:-1]:
            self.assertRegex(line, r"RunFailed .*<string>:\d+: in .*LookupError: of the user", line)

    def test_exceptions_without_a_printable_text_are_reported(self):
        class Unprintable(Exception):
            def __str__(self):
                raise ValueError("no text")

        def raising(error):
            def close_round(self):
                raise error
            return type("Failing", (mneme.Method,), {
                "name": "py-failing", "Server": type("Server", (mneme.AveragingServer,), {"close_round": close_round})})
        for error, words in ((LookupError("\ud800 x"), r"LookupError: \\ud800 x"),
                             (Unprintable(), "an exception that cannot be formatted"),
                             (SystemExit(3), "SystemExit: 3"), (KeyboardInterrupt(), "KeyboardInterrupt")):
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(mneme.RunFailed, words):
                mneme.run(scenario("py-failing"), methods=[raising(error)], out=os.path.join(folder, "run"))

    def test_a_client_half_without_an_upload_ends_the_run_with_what_it_returned(self):
        def of(client_round):
            return type("Failing", (mneme.Method,), {"name": "py-failing", "client_round": client_round})

        async def waits(self, ctx, broadcast):
            await ctx.train()

        async def yields(self, ctx, broadcast):
            yield ctx.train()

        for half, words in ((lambda self, ctx, broadcast: [1], r"client_round: returned \[1\]; expected mneme.Upload"),
                            (lambda self, ctx, broadcast: iter([ctx.train()]), "returned <list_iterator"),
                            (waits, "returned <coroutine .* not async def"),
                            (yields, "returned <async_generator .* not async def"),
                            (lambda self, ctx, broadcast: mneme.Upload(None), "neither weights nor tensors")):
            with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(mneme.RunFailed, words):
                mneme.run(scenario("py-failing"), methods=[of(half)], out=os.path.join(folder, "run"))

    def test_a_failure_survives_pickling(self):
        failed = mneme.RunFailed("text", "folder", "from", "Traceback ...")
        again = pickle.loads(pickle.dumps(failed))
        self.assertEqual((str(again), again.traceback, again.resume_from), (str(failed), "Traceback ...", "from"))

    def test_the_command_line_prints_file_and_line(self):
        with tempfile.TemporaryDirectory() as folder:
            code = os.path.join(folder, "failing.py")
            with open(code, "w", encoding="utf-8") as file:
                file.write("import mneme\n\n\nclass Failing(mneme.Method):\n    name = 'py-failing'\n\n"
                           "    class Server(mneme.AveragingServer):\n        def predict(self):\n"
                           "            return self.nothing\n")
            run = mneme.run(scenario("fedavg"), out=os.path.join(folder, "run"))
            resolved = os.path.join(folder, "scenario.toml")
            with open(resolved, "w", encoding="utf-8") as file:
                file.write(run.scenario().replace('"fedavg"', '"py-failing"'))
            words = ["run", resolved, "--quiet", "--python-code", code, "--out", os.path.join(folder, "failed")]
            said = completed(*words)
        self.assertEqual(said.returncode, 1, said.stderr)
        self.assertEqual(said.stderr.count("AttributeError"), 1, said.stderr)
        self.assertRegex(said.stderr, "failing.py:9: in predict: AttributeError")


class Callbacks(unittest.TestCase):
    def test_a_failing_logger_ends_the_run_cleanly_and_is_finished(self):
        class Logger:
            finished = []

            def __call__(self, record):
                raise OSError("disk full")

            def finish(self, run=None):
                self.finished.append(run)
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "run")
            with self.assertRaisesRegex(OSError, "disk full"):
                mneme.run(scenario("fedavg", rounds={"per_task": 100}), out=out, loggers=[Logger()])
            self.assertEqual(Logger.finished, [None])
            self.assertEqual(mneme.resume(out).status, "done")


if __name__ == "__main__":
    python_package.run_tests()
