"""Losses of Python methods: each term alone and sums with factors. Steps and values equal those of PyTorch."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from python_package import scenario  # noqa: E402
from torch.nn import functional  # noqa: E402

ROWS, EPOCHS, RATE, TAUGHT = 8, 3, 0.5, 4
SEEN = []


def rows_of_test():
    generator = torch.Generator().manual_seed(5)
    return torch.randn(ROWS, 1, 1, 64, generator=generator), torch.arange(ROWS) % 10


def squared(logits, labels):
    return (logits ** 2).sum(1)


def absolute(logits, labels):
    return logits.abs().sum(1)


def trained_with(loss, **options):
    """Returns (setup, outcome) of three full-batch steps of SGD on the rows above, from the initial weights."""
    class Probe(mneme.Method):
        name = "py-probe"

        def client_round(self, ctx, broadcast):
            images, labels = rows_of_test()
            start = broadcast.weights
            objective = loss if isinstance(loss, mneme.Loss) else loss(start)
            given = {name: value(start) if callable(value) else value for name, value in options.items()}
            trained = yield ctx.train(start=start, loss=objective, rows=ctx.rows_of(images, labels), epochs=EPOCHS,
                                      batch=0, learning_rate=RATE, **given)
            SEEN.append((self.unflatten(start), self.unflatten(trained.weights), trained.loss, trained.loss_terms))
            return mneme.Upload(trained.weights, rows=1)

    SEEN.clear()
    with tempfile.TemporaryDirectory() as folder:
        chosen = scenario("py-probe", rounds={"per_task": 1, "cohort": 1}, tasks={"kind": "single"},
                          model={"name": "mlp", "hidden": [16]})
        del chosen["tasks"]["count"]
        mneme.run(chosen, methods=[Probe], out=os.path.join(folder, "run"))
    return SEEN[0]


def logits_of(weights, images):
    hidden = functional.relu(functional.linear(images, weights["fc1.weight"], weights["fc1.bias"]))
    return functional.linear(hidden, weights["fc2.weight"], weights["fc2.bias"])


def in_torch(start, value_of):
    """Returns (weights, value of the last step) of the same steps by torch's autograd.
    @param value_of (weights, start, logits, labels) -> the loss"""
    images, labels = rows_of_test()
    images = images.reshape(ROWS, 64)
    weights, value = {name: tensor.clone() for name, tensor in start.items()}, None
    for _ in range(EPOCHS):
        weights = {name: tensor.detach().requires_grad_(True) for name, tensor in weights.items()}
        value = value_of(weights, start, logits_of(weights, images), labels)
        value.backward()
        weights = {name: tensor - RATE * tensor.grad for name, tensor in weights.items()}
    return {name: tensor.detach() for name, tensor in weights.items()}, float(value.detach())


def entropy(weights, start, logits, labels):
    return functional.cross_entropy(logits, labels)


def pull(mu):
    return lambda weights, start, logits, labels: mu / 2 * sum(
        ((tensor - start[name]) ** 2).sum() for name, tensor in weights.items())


def taught(weight, temperature):
    def value(weights, start, logits, labels):
        images = rows_of_test()[0].reshape(ROWS, 64)
        teacher = {name: tensor * 2.0 for name, tensor in start.items()}
        shown = (logits_of(teacher, images)[:, :TAUGHT] / temperature).softmax(1)
        return -weight * (shown * (logits[:, :TAUGHT] / temperature).log_softmax(1)).sum(1).mean()
    return value


def corrected(weights, start, logits, labels):
    return 0.01 * sum(tensor.sum() for tensor in weights.values())  # a gradient of 0.01 everywhere


def written(function):
    return lambda weights, start, logits, labels: function(logits, labels).mean()


def sum_of(*parts):
    return lambda *given: sum(factor * part(*given) for factor, part in parts)


def by_name(logits, labels, features, row_weight, side):
    """Cross-entropy with a margin, and a penalty on features; reads row_weight and side to check their values."""
    assert row_weight.shape == labels.shape and abs(float(row_weight.sum()) - 1) < 1e-6
    rows = functional.cross_entropy(logits - side["margin"], labels, reduction="none")
    return rows + 0.01 * (features ** 2).sum(1)


def by_name_in_torch(weights, start, logits, labels):
    images = rows_of_test()[0].reshape(ROWS, 64)
    features = functional.relu(functional.linear(images, weights["fc1.weight"], weights["fc1.bias"]))
    return functional.cross_entropy(logits - MARGIN, labels) + 0.01 * (features ** 2).sum(1).mean()


def from_teacher(logits, teacher_logits):
    return ((logits[:, :TAUGHT] - teacher_logits) ** 2).sum(1)


def from_teacher_in_torch(weights, start, logits, labels):
    teacher = {name: tensor * 2.0 for name, tensor in start.items()}
    images = rows_of_test()[0].reshape(ROWS, 64)
    return ((logits[:, :TAUGHT] - logits_of(teacher, images)[:, :TAUGHT]) ** 2).sum(1).mean()


def to_anchor(weights, start, side):
    return (side["importance"] * (weights - side["anchor"]) ** 2).sum() / 2 + 0.1 * (weights - start).abs().sum()


def to_anchor_in_torch(weights, start, logits, labels):
    return sum(0.15 * ((tensor - 0.5 * start[name]) ** 2).sum() + 0.1 * (tensor - start[name]).abs().sum()
               for name, tensor in weights.items())


def quadratic_in_torch(weights, start, logits, labels):
    return sum(0.15 * ((tensor - 0.5 * start[name]) ** 2).sum() for name, tensor in weights.items())


MARGIN = torch.linspace(-1.0, 1.0, 10)
NAMED = {"side": lambda start: {"margin": MARGIN}}
ANCHOR = {"side": lambda start: {"anchor": 0.5 * start, "importance": torch.full_like(start, 0.3)}}
TEACHER = {"teacher": lambda start: start * 2.0, "taught": range(TAUGHT)}
SIDE = {"side": lambda start: {"correction": torch.full_like(start, 0.01)}}
ce, prox, kd = mneme.cross_entropy, mneme.proximal, mneme.distillation
l2, l1 = mneme.loss(squared), mneme.loss(absolute)
MEANT = [  # a loss, the same in torch, other options of the job
    ("cross_entropy", ce(), sum_of((1, entropy)), {}),
    ("twice", 2.0 * ce(), sum_of((2, entropy)), {}),
    ("from the right", ce() * 0.5, sum_of((0.5, entropy)), {}),
    ("divided", ce() / 4, sum_of((0.25, entropy)), {}),
    ("proximal", prox(0.3), sum_of((1, entropy), (1, pull(0.3))), {}),
    ("with its own cross_entropy", ce() + prox(0.3), sum_of((1, entropy), (1, pull(0.3))), {}),
    ("the other way round", prox(0.3) + ce(), sum_of((1, entropy), (1, pull(0.3))), {}),
    ("twice proximal", 2 * prox(0.3), sum_of((2, entropy), (2, pull(0.3))), {}),
    ("a sum times a factor", 2 * (ce() + prox(0.3)), sum_of((2, entropy), (2, pull(0.3))), {}),
    ("a term twice", ce() + ce(), sum_of((1, entropy)), {}),
    ("taught", ce() + kd(2.0, 3.0), sum_of((1, entropy), (1, taught(2.0, 3.0))), TEACHER),
    ("half taught", ce() + 0.5 * kd(2.0, 3.0), sum_of((1, entropy), (1, taught(1.0, 3.0))), TEACHER),
    ("only taught", 3 * kd(0.5, 1.5), sum_of((1, taught(1.5, 1.5))), TEACHER),
    ("corrected", mneme.corrected(), sum_of((1, entropy), (1, corrected)), SIDE),
    ("corrected and pulled", mneme.corrected() + prox(0.3), sum_of((1, entropy), (1, corrected), (1, pull(0.3))), SIDE),
    ("twice corrected", 2 * mneme.corrected(), sum_of((2, entropy), (2, corrected)), SIDE),
    ("written", l2, sum_of((1, written(squared))), {}),
    ("written and native", 0.1 * l2 + prox(0.3) + ce(),
     sum_of((0.1, written(squared)), (1, entropy), (1, pull(0.3))), {}),
    ("two written", 0.1 * l2 + 0.2 * l1 + ce(),
     sum_of((0.1, written(squared)), (0.2, written(absolute)), (1, entropy)), {}),
    ("by name", mneme.loss(by_name), by_name_in_torch, NAMED),
    ("twice by name", 2.0 * mneme.loss(by_name) + l2, sum_of((2, by_name_in_torch), (1, written(squared))), NAMED),
    ("teacher by name", ce() + mneme.loss(from_teacher), sum_of((1, entropy), (1, from_teacher_in_torch)), TEACHER),
    ("penalty", ce() + 2.0 * mneme.loss(to_anchor), sum_of((1, entropy), (2, to_anchor_in_torch)), ANCHOR),
    ("quadratic", lambda start: ce() + mneme.quadratic(0.5 * start, torch.full_like(start, 0.3)),
     sum_of((1, entropy), (1, quadratic_in_torch)), {}),
    ("two quadratic", lambda start: 0.5 * (ce() + mneme.quadratic(0.5 * start, torch.full_like(start, 0.3))
                                           + 2 * mneme.quadratic(None, torch.full_like(start, 0.4))),
     sum_of((0.5, entropy), (0.5, quadratic_in_torch), (0.4, pull(1.0))), {}),
    ("all", sum([ce(), prox(0.3), kd(2.0, 3.0), 0.1 * l2]),
     sum_of((1, entropy), (1, pull(0.3)), (1, taught(2.0, 3.0)), (0.1, written(squared))), TEACHER),
]
NOT_MEANT = [
    (lambda: prox(0.1) + prox(0.2), "proximal term twice, with 0.1 and with 0.2"),
    (lambda: 2 * ce() + prox(0.1), "cross-entropy twice, with 2 and with 1"),
    (lambda: kd(1.0, 2.0) + kd(1.0, 3.0), "distillation twice, with weight 1 and temperature 2 and with weight 1"),
    (lambda: kd(1.0) + kd(2.0), "distillation twice"),
    (lambda: l2 + 2 * l2, "the loss 'squared' twice"),
    (lambda: ce() * float("nan"), "finite"),
    (lambda: ce() * float("inf"), "finite"),
    (lambda: ce() / 0, "division|finite"),
    (lambda: prox(-1.0), "mu >= 0"),
    (lambda: prox(float("inf")), "mu >= 0"),
    (lambda: kd(-1.0), "weight >= 0"),
    (lambda: kd(1.0, 0.0), "temperature > 0"),
    (lambda: mneme.quadratic(torch.zeros(3), None), "importance = None"),
    (lambda: mneme.quadratic(torch.zeros(3), torch.zeros(4)), "anchor has 3 numbers and importance 4"),
    (lambda: mneme.quadratic(None, torch.zeros(4, dtype=torch.double)), r"float32 \[P\]"),
    (lambda: mneme.quadratic(None, torch.zeros(2, 2)), r"of 2 axes; expected float32 \[P\]"),
]
NO_ARGUMENTS = [
    (lambda logit, labels, side: None, "the argument 'logit' cannot be passed by name.*did you mean 'logits'"),
    (lambda x: None, "the argument 'x' cannot be passed by name"),
    (lambda weights, logits: None, "a penalty is a function of weights.*two functions"),
    (lambda labels, side: None, "have no gradient; expected logits, features or weights"),
    (lambda start: None, "not of start alone"),
    (lambda *given: None, r"the arguments \[\] cannot be passed by name"),
]
NO_JOB = [  # a call in client_round(), and the error
    (lambda ctx: ctx.train(loss=mneme.loss(to_anchor)), "no value for each row; expected a sum"),
    (lambda ctx: ctx.train(loss=ce() + mneme.quadratic(None, torch.ones(3))), "quadratic.. has 3 numbers; expected"),
    (lambda ctx: ctx.train(loss=mneme.loss(from_teacher)), "a teacher, but none is given; expected teacher=weights"),
    (lambda ctx: ctx.train(lr=0.1), "no option 'lr'; did you mean 'learning_rate'"),
    (lambda ctx: ctx.train(replay=ctx.rows, lr=0.1), "no option 'lr'; did you mean 'learning_rate'"),
    (lambda ctx: ctx.train(classes=[0, 6]), r"classes = \[0, 6\]; expected a range of classes"),
    (lambda ctx: ctx.train(classes=range(2 ** 70)), r"classes = range\(0, [0-9]+\); expected a range of classes"),
    (lambda ctx: ctx.train(batch_size=8), "no option 'batch_size'; did you mean 'batch'"),
    (lambda ctx: ctx.train(torch.zeros(3)), "an argument without a name; expected every option by name"),
    (lambda ctx: ctx.evaluate(None, None), "arguments without a name.*ctx.evaluate.weights="),
    (lambda ctx: ctx.train().weights, "has not run; expected a yield before it"),
    (lambda ctx: ctx.train(result="gradiant"), "'gradiant'; expected 'weights', 'gradient'"),
]
NO_NUMBER = [lambda: ce() * True, lambda: ce() * "2", lambda: ce() * ce(), lambda: ce() + 1, lambda: ce() + squared,
             lambda: mneme.loss(3), lambda: mneme.loss(ce()), lambda: ce() * None]


class Values(unittest.TestCase):
    def test_loss_values_and_steps_equal_torchs(self):
        for name, loss, meaning, options in MEANT:
            with self.subTest(name):
                start, weights, value, terms = trained_with(loss, **options)
                expected, last = in_torch(start, meaning)
                for part, tensor in expected.items():
                    torch.testing.assert_close(weights[part], tensor, rtol=1e-4, atol=1e-5,
                                               msg=lambda text, name=name: f"{name}: {text}")
                if "correct" not in name:  # a correction has no loss value
                    self.assertAlmostEqual(value, last, delta=1e-4 * max(1.0, abs(last)), msg=name)
                    self.assertAlmostEqual(sum(terms.values()), last, delta=1e-4 * max(1.0, abs(last)), msg=name)

    def test_a_numpy_or_torch_number_may_be_a_factor(self):
        import numpy
        for two in (2, 2.0, numpy.float64(2), numpy.float32(2), numpy.int64(2), torch.tensor(2.0)):
            self.assertEqual(repr(two * ce()), repr(2.0 * ce()))
            self.assertEqual(repr(ce() * two), repr(2.0 * ce()))

    def test_the_proximal_term_contains_cross_entropy(self):
        self.assertEqual(repr(ce() + prox(0.3)), repr(prox(0.3)))
        self.assertEqual(repr(prox(0.3) + prox(0.3)), repr(prox(0.3)))


IS_BATCHED = []  # whether a call of separated() had the rows of several clients


def separated(logits, labels):
    IS_BATCHED.append(torch._C._functorch.is_batchedtensor(logits))
    return (logits.softmax(1) - functional.one_hot(labels, logits.shape[1])).square().sum(1)


def branching(logits, labels):
    return absolute(logits, labels) if float(logits.detach().sum()) > 0.0 else squared(logits, labels)


def compared(logits, labels):
    return -(functional.normalize(logits, dim=1) @ functional.normalize(logits, dim=1).T).log_softmax(1).diagonal()


def of_one_number(logits, labels):
    return logits.square().sum()


class Batches(unittest.TestCase):
    def run_of(self, function, width):
        """Runs two rounds of eight clients with equally many rows, in groups of at most `width`."""
        class Probe(mneme.Method):
            name = "py-probe"

            def client_round(self, ctx, broadcast):
                trained = yield ctx.train(start=broadcast.weights, loss=mneme.loss(function), epochs=2)
                return mneme.Upload(trained.weights, rows=trained.rows)

        with tempfile.TemporaryDirectory() as folder:
            chosen = scenario("py-probe", rounds={"per_task": 2, "cohort": 8}, clients={"count": 8},
                              tasks={"kind": "single"}, partition={"kind": "iid"},
                              training={"batch": 10, "learning_rate": 0.1}, worker={"fused_clients_max": width})
            del chosen["tasks"]["count"]
            return mneme.run(chosen, methods=[Probe], threads=1, out=os.path.join(folder, "run")).digest

    def test_a_loss_has_the_same_bits_for_groups_of_any_size(self):
        for function in (separated, branching, compared):
            with self.subTest(function.__name__):
                self.assertEqual(len({self.run_of(function, width) for width in (1, 3, 4, 8)}), 1)

    def test_a_step_of_several_clients_is_one_call(self):
        IS_BATCHED.clear()
        self.run_of(separated, 1)
        alone = len(IS_BATCHED)
        self.assertFalse(any(IS_BATCHED))
        IS_BATCHED.clear()
        self.run_of(separated, 8)
        self.assertTrue(any(IS_BATCHED))
        self.assertLess(len(IS_BATCHED), alone / 2)

    def test_a_loss_that_draws_random_numbers_is_refused(self):
        def dropped(logits, labels):
            return functional.cross_entropy(functional.dropout(logits, 0.5), labels, reduction="none")

        for width in (1, 8):
            with self.assertRaisesRegex(mneme.RunFailed, "the loss 'dropped' returned different values for equal"):
                self.run_of(dropped, width)

    def test_a_wrong_result_names_the_loss(self):
        with self.assertRaisesRegex(mneme.RunFailed, "the loss 'of_one_number' returned a tensor of 1 numbers"):
            self.run_of(of_one_number, 8)


class Private(unittest.TestCase):
    def test_epsilon_of_a_run_is_the_engines(self):
        with tempfile.TemporaryDirectory() as folder:
            run = mneme.run(scenario("fedavg", uploads={"clip_norm": 1.0, "noise_multiplier": 1.0}),
                            out=os.path.join(folder, "run"))
            try:
                self.assertAlmostEqual(mneme.privacy.epsilon(run), run.summary["epsilon"], places=6)
            except ImportError as missing:  # dp-accounting is not installed
                self.assertIn("mneme-fcl[privacy]", str(missing))


class Refused(unittest.TestCase):
    def test_contradictory_sums_of_losses_are_refused(self):
        for make, words in NOT_MEANT:
            with self.assertRaisesRegex((ValueError, ZeroDivisionError), words):
                make()

    def test_functions_of_other_arguments_are_refused(self):
        for function, words in NO_ARGUMENTS:
            with self.subTest(words), self.assertRaisesRegex(TypeError, words):
                mneme.loss(function)

    def test_wrong_jobs_are_refused_with_the_line(self):
        for call, words in NO_JOB:
            class Probe(mneme.Method):
                name = "py-probe"

                def client_round(self, ctx, broadcast):
                    yield call(ctx)  # noqa: B023  used in this pass of the loop only

            with self.subTest(words), tempfile.TemporaryDirectory() as folder:
                with self.assertRaisesRegex(mneme.RunFailed, f"python_losses_test.py:[0-9]+: in .*{words}"):
                    mneme.run(scenario("py-probe"), methods=[Probe], out=os.path.join(folder, "run"))

    def test_help_names_every_option_of_train(self):
        for option in ("start", "loss", "rows", "epochs", "batch", "learning_rate", "momentum", "weight_decay",
                       "clip_norm", "classes", "result", "side", "teacher", "taught", "targets", "views", "replay",
                       "replay_rows", "replay_weight", "stream"):
            self.assertRegex(mneme.ClientContext.train.__doc__, rf"\n{option}: .+=.+\.")

    def test_operands_that_are_no_number_or_loss_are_refused(self):
        for index, make in enumerate(NO_NUMBER):
            with self.subTest(index), self.assertRaises(TypeError):
                make()


if __name__ == "__main__":
    python_package.run_tests()
