"""Python methods compute the same as built-in ones, bit for bit, and mistakes in them are reported."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import python_methods as methods  # noqa: E402
import torch  # noqa: E402
from forked_program import FORKS  # noqa: E402
from mneme._code import methods_of  # noqa: E402
from python_package import scenario  # noqa: E402

ALL = [methods.FedAvgM, methods.FedAvg, methods.FedProx, methods.Scaffold, methods.Replay, methods.Icarl,
       methods.OwnServer, methods.Sum, methods.SquaredError]


class Runs(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.count = 0

    def run_of(self, chosen, **options):
        self.count += 1
        out = os.path.join(self.scratch.name, str(self.count))
        return mneme.run(chosen, methods=options.pop("methods", ALL), out=out, **options)

    def assert_equal_models(self, a, b):
        a, b = a.model(), b.model()
        self.assertEqual(sorted(a), sorted(b))
        for name, tensor in a.items():
            self.assertTrue(torch.equal(tensor, b[name]), name)


class EqualBits(Runs):
    def compare(self, built_in, written, **sections):
        native = self.run_of(scenario(built_in, **sections))
        for threads, width in ((1, 1), (1, 0), (2, 1), (2, 0), (4, 1), (4, 0), (4, 3)):
            again = self.run_of(scenario(written, worker={"fused_clients_max": width}, **sections), threads=threads)
            self.assertEqual(again.digest, native.digest, (written, threads, width))
            self.assert_equal_models(again, native)
            self.assertEqual([r["accuracy"] for r in again.records], [r["accuracy"] for r in native.records])
        return native

    def test_python_fedavg_and_fedprox_equal_the_built_in_methods(self):
        plain = self.compare("fedavg", "py-fedavg")
        prox = self.compare("fedprox", "py-fedprox")
        self.assertNotEqual(plain.digest, prox.digest)

    def test_python_fedavg_equals_the_built_in_one_in_asynchronous_runs(self):
        self.compare("fedavg", "py-fedavg", rounds={"mode": "async", "buffer": 3, "concurrency": 6})

    def test_python_fedavg_equals_the_built_in_one_if_only_the_head_is_trained(self):
        self.compare("fedavg", "py-fedavg", model={"trainable": "head", "weights": "as-drawn"})

    def test_the_example_with_server_momentum_runs(self):
        first, second = (self.run_of(scenario("my-fedavgm"), threads=n) for n in (1, 2))
        self.assertEqual(first.digest, second.digest)
        without = self.run_of(scenario("my-fedavgm"), overrides={"strategy.beta": 0.0})
        self.assertNotEqual(first.digest, without.digest)
        plain = self.run_of(scenario("py-fedavg")).model()
        for name, tensor in without.model().items():  # w + (mean - w) is the mean up to rounding
            torch.testing.assert_close(tensor, plain[name], rtol=1e-4, atol=1e-6)

    def test_python_scaffold_equals_the_built_in_one(self):
        chosen = {"training": {"batch": 0, "learning_rate": 0.1}}
        written, native = self.run_of(scenario("py-scaffold", **chosen)), self.run_of(scenario("scaffold", **chosen))
        for name, tensor in native.model().items():
            torch.testing.assert_close(written.model()[name], tensor, rtol=1e-4, atol=1e-5)

    def test_a_replay_method_with_its_own_server_runs(self):
        replayed, plain = self.run_of(scenario("py-replay")), self.run_of(scenario("py-fedavg"))
        self.assertNotEqual(replayed.digest, plain.digest)
        self.assertEqual(replayed.digest, self.run_of(scenario("py-replay"), threads=3).digest)
        own = self.run_of(scenario("py-own-server"))
        uniform = self.run_of(scenario("fedavg", strategy={"weighting": "uniform"}))
        for name, tensor in uniform.model().items():
            torch.testing.assert_close(own.model()[name], tensor, rtol=1e-4, atol=1e-5)

    def test_python_icarl_uses_herding_and_a_teacher(self):
        one, many = (self.run_of(scenario("py-icarl", worker={"fused_clients_max": width}), threads=threads)
                     for width, threads in ((1, 1), (0, 3)))
        self.assertEqual(one.digest, many.digest)
        terms = [record["training_loss_terms"] for record in one.records]
        self.assertEqual([sorted(part) for part in terms],
                         [["cross_entropy"]] * 3 + [["cross_entropy", "distillation"]] * 3)
        self.assertGreater(terms[-1]["distillation"], 0.0)
        self.assertGreater(one.matrix[1][0], self.run_of(scenario("py-fedavg")).matrix[1][0])

    def test_a_sum_of_losses_has_the_gradients_of_its_parts(self):
        native, summed = self.run_of(scenario("fedprox")), self.run_of(scenario("py-sum", strategy={"weight": 0.0}))
        self.assert_equal_models(summed, native)  # a teacher of weight 0 changes nothing
        taught = self.run_of(scenario("py-sum", strategy={"weight": 0.5}))
        self.assertEqual(sorted(taught.records[-1]["training_loss_terms"]),
                         ["cross_entropy", "distillation", "proximal"])
        self.assertNotEqual(taught.digest, summed.digest)

    def test_a_loss_in_python_has_the_same_bits_for_any_width(self):
        one, many = (self.run_of(scenario("py-squared-error", worker={"fused_clients_max": n})) for n in (1, 5))
        self.assertEqual(one.digest, many.digest)
        self.assertIn("squared_error", str(one.records[-1].get("training_loss_terms", "squared_error")))


def run_until_killed(name, folder, evaluated):
    """Runs in another process. Reports the second evaluation."""
    seen = []

    def look(record):
        seen.append(record)
        if len(seen) == 2:
            evaluated.send(record)
    mneme.run(scenario(name, rounds={"per_task": 30}), methods=ALL, out=folder, on_evaluation=look)


BUILT_IN = {"py-fedavg": "fedavg", "py-fedprox": "fedprox"}


class GoingOn(Runs):
    def test_a_killed_run_resumes_to_the_same_digest(self):
        for name in ("py-fedavg", "py-fedprox", "my-fedavgm", "py-icarl"):
            folder = os.path.join(self.scratch.name, "killed-" + name)
            evaluated, sent = FORKS.Pipe(duplex=False)
            process = FORKS.Process(target=run_until_killed, args=(name, folder, sent))
            process.start()
            sent.close()
            evaluated.recv()
            process.kill()
            process.join()
            whole = self.run_of(scenario(BUILT_IN.get(name, name), rounds={"per_task": 30}))
            resumed = mneme.resume(folder, methods=ALL)
            self.assertEqual((resumed.status, resumed.digest), ("done", whole.digest))
            self.assert_equal_models(resumed, whole)

    def test_an_exception_in_a_callback_ends_the_run_cleanly(self):
        folder = os.path.join(self.scratch.name, "stopped")

        def stop(record):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            mneme.run(scenario("py-fedavg", rounds={"per_task": 200}), methods=ALL, out=folder, on_evaluation=stop)
        self.assertIn(mneme.load(folder).status, ("interrupted", "done"))
        self.assertEqual(mneme.resume(folder, methods=ALL).status, "done")

    def test_a_run_does_not_resume_with_another_source(self):
        folder = os.path.join(self.scratch.name, "changed")
        started = scenario("py-changing")
        first, second = changing(0.1), changing(0.2)
        with self.assertRaises(mneme.RunFailed):
            mneme.run(started, methods=[first], out=folder)
        with self.assertRaisesRegex(mneme.ScenarioError, "another source"):
            mneme.resume(folder, methods=[second])

    def test_the_location_of_a_class_is_not_part_of_its_source(self):
        digests = []
        for name, above in (("first", ""), ("second", "\n\n")):
            os.mkdir(os.path.join(self.scratch.name, name))
            path = os.path.join(self.scratch.name, name, f"{name}.py")
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"import mneme\n{above}class Placed(mneme.Method):\n    name = 'py-placed'\n"
                           "    rate: float = 0.5\n")
            digests.append(methods_of(path)[0]._source_digest())
        self.assertEqual(digests, ["c6f3f0f76e105892b0e8c838abb2f000"] * 2)  # on any version of Python

    def test_a_changed_method_resumes_with_allow_source_change(self):
        folder = os.path.join(self.scratch.name, "mended")
        line = mended.__code__.co_firstlineno + 3
        with self.assertRaisesRegex(mneme.RunFailed, f"python_methods_test.py:{line}: .*ZeroDivisionError"):
            mneme.run(scenario("py-mended"), methods=[mended(whole=False)], out=folder)
        broken = mneme.load(folder)
        self.assertEqual((broken.status, broken.source_changes), ("failed", []))
        with self.assertRaisesRegex(mneme.ScenarioError, r"another source.*resume\(..., allow_source_change=True\)"):
            mneme.resume(folder, methods=[mended(whole=True)])
        resumed = mneme.resume(folder, methods=[mended(whole=True)], allow_source_change=True)
        whole = self.run_of(scenario("py-mended"), methods=[mended(whole=True)])
        self.assertEqual((resumed.status, resumed.digest), ("done", whole.digest))
        self.assert_equal_models(resumed, whole)
        self.assertEqual([change["after_rounds"] for change in resumed.source_changes], [4])
        self.assertEqual((whole.source_changes, resumed.scenario() == broken.scenario()), ([], True))


def mended(whole):
    """Returns a method. Unless `whole`, it fails in the second task, in a helper function."""
    def returns_upload(trained, place):
        return mneme.Upload(trained.weights, rows=trained.rows // (place.task == 0 or place.round < 4))

    class Mended(mneme.Method):
        """FedAvg."""
        name = "py-mended"

        def client_round(self, ctx, broadcast):
            trained = yield ctx.train()
            if whole:
                return mneme.Upload(trained.weights, rows=trained.rows)
            return returns_upload(trained, ctx.place)
    return Mended


def changing(rate):
    """Returns one of two classes of equal name with different sources."""
    if rate == 0.1:
        class Changing(mneme.Method):
            """Fails in the second round."""
            name = "py-changing"

            def client_round(self, ctx, broadcast):
                trained = yield ctx.train()
                return mneme.Upload(trained.weights[:5 if ctx.place.round else None])
    else:
        class Changing(mneme.Method):
            """Does not fail."""
            name = "py-changing"
    return Changing


# -- user errors ------------------------------------------------------------------------------------------------------

def client(function):
    """Returns a method with this client half."""
    return type("Broken", (mneme.Method,), {"name": "py-broken", "client_round": function})


def raises(self, ctx, broadcast):
    yield ctx.train()
    return 1 / 0


def nonsense(self, ctx, broadcast):
    yield 3


def no_upload(self, ctx, broadcast):
    trained = yield ctx.train()
    return trained.weights


def wrong_option(self, ctx, broadcast):
    yield ctx.train(lerning_rate=0.1)


def wrong_size(self, ctx, broadcast):
    trained = yield ctx.train()
    return mneme.Upload(trained.weights[1:])


def wrong_type(self, ctx, broadcast):
    trained = yield ctx.train()
    return mneme.Upload(trained.weights.double())


def impure(self, ctx, broadcast):
    trained = yield ctx.train(learning_rate=float(torch.rand(())))
    return mneme.Upload(trained.weights)


def impure_at_the_end(self, ctx, broadcast):
    trained = yield ctx.train()
    return mneme.Upload(trained.weights + torch.rand(()))


def writes(self, ctx, broadcast):
    trained = yield ctx.train()
    broadcast.weights.add_(1.0)
    return mneme.Upload(trained.weights)


def sets_itself(self, ctx, broadcast):
    self.rounds = 1
    trained = yield ctx.train()
    return mneme.Upload(trained.weights)


def not_a_number(self, ctx, broadcast):
    trained = yield ctx.train()
    return mneme.Upload(trained.weights * float("nan"))


def rows_nobody_has(self, ctx, broadcast):
    trained = yield ctx.train(rows=ctx.rows.pick(torch.tensor([10**9])))
    return mneme.Upload(trained.weights)


def no_teacher(self, ctx, broadcast):
    yield ctx.train(loss=mneme.cross_entropy() + mneme.distillation())


def idle_teacher(self, ctx, broadcast):
    yield ctx.train(teacher=broadcast.weights)


def taught_elsewhere(self, ctx, broadcast):
    yield ctx.train(loss=mneme.distillation(), teacher=broadcast.weights, taught=range(1, 3))


BROKEN = [(raises, "python_methods_test.py:{line}.*ZeroDivisionError: division by zero"),
          (nonsense, "python_methods_test.py:{line}.*yielded 3; expected a job"),
          (no_upload, "returned tensor.*expected mneme.Upload"),
          (wrong_option, "python_methods_test.py.*no option 'lerning_rate'; did you mean 'learning_rate'"),
          (wrong_size, "Upload: weights is Float of 1 axes and .* expected float32"),
          (wrong_type, "Upload: weights is Double"),
          (impure, "run twice .* requested different jobs"),
          (impure_at_the_end, "run twice .* returned different uploads"),
          (no_teacher, "python_methods_test.py:{line}.*compares the net with a teacher, but none is given"),
          (idle_teacher, "teacher is given, but the loss does not use it"),
          (taught_elsewhere, r"taught = range\(1, 3\); expected the first classes of the loss, range\(0, 5\)"),
          (writes, "wrote into broadcast.weights"),
          (sets_itself, "self.rounds cannot be set in a round"),
          (not_a_number, "python_methods_test.py.*Upload: weights has 1210 values of 1210 that are not finite"),
          (rows_nobody_has, "row 1000000000 does not belong to client")]


class Mistakes(Runs):
    def test_each_mistake_ends_the_run_with_line_and_reason(self):
        for function, expected in BROKEN:
            with self.subTest(function.__name__):
                with self.assertRaises(mneme.RunFailed) as caught:
                    self.run_of(scenario("py-broken"), methods=[client(function)])
                line = function.__code__.co_firstlineno + (2 if function is raises else 1)
                self.assertRegex(str(caught.exception), expected.format(line=line))
                self.assertEqual(mneme.load(caught.exception.folder).status, "failed")

    def test_the_original_exception_is_the_cause(self):
        with self.assertRaises(mneme.RunFailed) as caught:
            self.run_of(scenario("py-broken"), methods=[client(raises)])
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)

    def test_nan_weights_of_a_server_are_reported(self):
        class Spoils(mneme.Method):
            """Divides by zero."""
            name = "py-spoils"

            class Server(mneme.AveragingServer):
                def close_round(self):
                    self.weights = self.mean() / 0.0
        line = Spoils.Server.close_round.__code__.co_firstlineno + 1
        with self.assertRaisesRegex(mneme.RunFailed, f"python_methods_test.py:{line}.*self.weights has .* not finite"):
            self.run_of(scenario("py-spoils"), methods=[Spoils])

    def test_keys_of_python_methods_are_validated(self):
        with self.assertRaisesRegex(mneme.ScenarioError, "beta.*1"):
            mneme.validate(scenario("my-fedavgm", strategy={"beta": 2.0}), methods=ALL)
        with self.assertRaisesRegex(mneme.ScenarioError, "unknown key 'bta'.*beta"):
            mneme.validate(scenario("my-fedavgm", strategy={"bta": 0.5}), methods=ALL)
        with self.assertRaisesRegex(mneme.ScenarioError, "py-nobody"):
            mneme.validate(scenario("py-nobody"), methods=ALL)
        self.assertIn("my-fedavgm", str(mneme.schema(ALL)))

    def test_a_class_that_is_no_method_is_refused(self):
        for wrong in (int, methods.FedAvg(), type("NoName", (mneme.Method,), {})):
            with self.assertRaises(TypeError):
                mneme.validate(scenario("fedavg"), methods=[wrong])
        with self.assertRaisesRegex(ValueError, "'fedavg' is a built-in method"):
            mneme.validate(scenario("fedavg"), methods=[type("Taken", (mneme.Method,), {"name": "fedavg"})])


if __name__ == "__main__":
    python_package.run_tests()
