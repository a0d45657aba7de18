"""Two views of each row, soft targets and inputs of rows in Python methods; docs/python.md's methods that use them."""
import os
import re
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from program import ROOT  # noqa: E402
from python_package import scenario  # noqa: E402
from torch.nn import functional  # noqa: E402

RATE = 0.5
IMAGES = {"data": {"name": "synthetic", "shape": [3, 8, 8], "classes": 4, "rows": 200},
          "tasks": {"kind": "single"}, "clients": {"count": 4}, "rounds": {"per_task": 2, "cohort": 2},
          "model": {"name": "mlp", "hidden": [8]}, "training": {"augment": "crop-flip", "learning_rate": RATE}}
SEEN = []


def distance(logits, view_logits, labels, features, view_features, row_weight):
    SEEN.append([part.detach().clone() for part in
                 (logits, view_logits, labels, features, view_features, row_weight)])
    return (logits - view_logits).square().sum(1) + (features * view_features).sum(1)


def of_images(name, **sections):
    chosen = scenario(name, **{**IMAGES, **sections})
    chosen["tasks"] = {**chosen["tasks"]}
    chosen["tasks"].pop("count", None)
    return chosen


def method_of(begun):
    """A method whose client's half is the generator function `begun`(method, ctx, broadcast)."""
    class Probe(mneme.Method):
        name = "py-probe"

        def client_round(self, ctx, broadcast):
            trained = yield from begun(self, ctx, broadcast)
            return mneme.Upload(trained.weights, rows=trained.rows)

    return Probe


class Runs(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder, self.count = scratch.name, 0
        SEEN.clear()

    def run_of(self, method, chosen=None, threads=1, **overrides):
        self.count += 1
        return mneme.run(chosen or of_images(method.name), {"seed": 3, **overrides}, methods=[method], threads=threads,
                         quiet=True, out=f"{self.folder}/{self.count}")

    def error_of(self, begun, **overrides):
        with self.assertRaises(mneme.RunFailed) as failed:
            self.run_of(method_of(begun), **overrides)
        return str(failed.exception)


class Views(Runs):
    def test_a_loss_receives_both_views_of_each_row(self):
        kept = []

        def begun(method, ctx, broadcast):
            trained = yield ctx.train(start=broadcast.weights, loss=mneme.cross_entropy() + mneme.loss(distance),
                                      views=2, epochs=1, batch=0)
            kept.append((method.unflatten(broadcast.weights), method.unflatten(trained.weights), trained.loss_terms,
                         trained.rows, len(ctx.rows)))
            return trained

        self.run_of(method_of(begun), **{"rounds.per_task": 1, "rounds.cohort": 1})
        logits, second, labels, features, second_features, weights = SEEN[0]
        start, end, terms, rows, held = kept[0]
        self.assertEqual((len(labels), rows), (held, held))
        self.assertFalse(torch.equal(logits, second))
        torch.testing.assert_close(weights, torch.full([held], 1.0 / held))
        head = [start["fc2.weight"].clone().requires_grad_(), start["fc2.bias"].clone().requires_grad_()]
        outputs = [functional.linear(values, *head) for values in (features, second_features)]
        torch.testing.assert_close(outputs[1], second)
        entropy = functional.cross_entropy(torch.cat(outputs), torch.cat([labels, labels]))
        apart = ((outputs[0] - outputs[1]).square().sum(1) + (features * second_features).sum(1)).mean()
        (entropy + apart).backward()
        for name, value in zip(("fc2.weight", "fc2.bias"), head):
            torch.testing.assert_close(end[name], (value - RATE * value.grad).detach(), rtol=1e-4, atol=1e-5)
        self.assertAlmostEqual(terms["cross_entropy"], float(entropy.detach()), places=4)
        self.assertAlmostEqual(terms["distance"], float(apart.detach()), places=4)

    def test_digests_are_equal_for_any_threads_and_group_sizes(self):
        def begun(method, ctx, broadcast):
            return (yield ctx.train(loss=mneme.loss(distance), views=2, epochs=2, batch=8, learning_rate=0.01))

        runs = [self.run_of(method_of(begun), threads=threads, **{"worker.fused_clients_max": width})
                for threads, width in ((1, 1), (2, 4), (3, 0))]
        self.assertEqual(len({run.digest for run in runs}), 1)

    def test_virtual_time_counts_both_views(self):
        def seconds(views):
            def begun(method, ctx, broadcast):
                return (yield ctx.train(views=views, batch=7))
            return self.run_of(method_of(begun)).summary["virtual_seconds"]

        single, double = seconds(1), seconds(2)
        self.assertGreater(double, single)

    def test_options_that_do_not_fit_are_errors(self):
        views = mneme.loss(distance)
        cases = (({"loss": views}, {}, "compares two views of the rows, but views = 1; expected views=2"),
                 ({"loss": views, "views": 3}, {}, r"views = 3; expected an integer in \[1, 2\]"),
                 ({"views": 2, "result": "gradient"}, {}, "views = 2 with a result other than 'weights'"),
                 ({"views": 2, "replay": None}, {}, "views = 2 with replay; expected one of them"),
                 ({"views": 2}, {"training.augment": "none"}, "both views are equal: training.augment = \"none\""))
        for options, keys, message in cases:
            with self.subTest(message):
                def begun(method, ctx, broadcast, options=options):
                    if "replay" in options:
                        options = {**options, "replay": ctx.rows}
                    return (yield ctx.train(**options))
                self.assertRegex(self.error_of(begun, **keys), message)


class Targets(Runs):
    def test_soft_targets_replace_labels(self):
        kept = []

        def begun(method, ctx, broadcast):
            inputs, classes = ctx.rows.inputs, 4
            targets = torch.softmax(inputs.flatten(1)[:, :classes], 1)
            trained = yield ctx.train(rows=ctx.rows_of(inputs, ctx.rows.labels), targets=targets, epochs=1, batch=0)
            kept.append((method.unflatten(broadcast.weights), method.unflatten(trained.weights), inputs, targets))
            return trained

        self.run_of(method_of(begun), **{"rounds.per_task": 1, "rounds.cohort": 1})
        start, end, inputs, targets = kept[0]
        start = {name: value.clone().requires_grad_() for name, value in start.items()}
        hidden = functional.relu(functional.linear(inputs.flatten(1), start["fc1.weight"], start["fc1.bias"]))
        logits = functional.linear(hidden, start["fc2.weight"], start["fc2.bias"])
        functional.cross_entropy(logits, targets).backward()
        for name, value in start.items():
            torch.testing.assert_close(end[name], (value - RATE * value.grad).detach(), rtol=1e-4, atol=1e-6)

    def test_inputs_are_the_rows_that_training_reads(self):
        def begun(own):
            def of(method, ctx, broadcast):
                rows = ctx.rows if own else ctx.rows_of(ctx.rows.inputs, ctx.rows.labels)
                return (yield ctx.train(rows=rows, batch=8))
            return of

        plain = {"training.augment": "none"}
        self.assertEqual(self.run_of(method_of(begun(True)), **plain).model()["fc1.weight"].tolist(),
                         self.run_of(method_of(begun(False)), **plain).model()["fc1.weight"].tolist())

    def test_targets_that_do_not_fit_are_errors(self):
        def soft(rows, classes):
            return torch.full([rows, classes], 0.25)

        cases = ((lambda n: {"targets": soft(n, 3)}, r"expected float32 \[\d+, 4\]"),
                 (lambda n: {"targets": soft(n + 1, 4)}, r"expected float32 \[\d+, 4\]"),
                 (lambda n: {"targets": torch.zeros(n, dtype=torch.int64)}, "targets are Long"),
                 (lambda n: {"targets": -soft(n, 4)}, "negative or not finite"),
                 (lambda n: {"targets": soft(n, 4) * float("nan")}, "negative or not finite"),
                 (lambda n: {"targets": soft(n, 4), "loss": mneme.loss(lambda logits, labels: logits.sum(1))},
                  "the loss reads labels"))
        for options, message in cases:
            with self.subTest(message):
                def begun(method, ctx, broadcast, options=options):
                    return (yield ctx.train(**options(len(ctx.rows))))
                self.assertRegex(self.error_of(begun), message)


class Documented(Runs):
    def test_the_methods_of_the_page_run_with_equal_digests_for_any_threads(self):
        with open(os.path.join(ROOT, "docs", "python.md"), encoding="utf-8") as file:
            section = file.read().split("### Two views, and mixup\n")[1].split("\n### ")[0]
        code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
        path = os.path.join(self.folder, "page.py")
        with open(path, "w", encoding="utf-8") as file:  # a method's digest reads its source
            file.write(code)
        names = {"__name__": "page", "mneme": mneme, "torch": torch}
        exec(compile(code, path, "exec"), names)  # noqa: S102
        methods = [value for value in names.values() if isinstance(value, type) and issubclass(value, mneme.Method)]
        self.assertEqual(len(methods), 2)
        for method in methods:
            with self.subTest(method.name):
                chosen = of_images(method.name, rounds={"per_task": 8, "cohort": 4}, training={
                    "augment": "crop-flip", "learning_rate": 0.1, "batch": 10})
                runs = [self.run_of(method, chosen, threads) for threads in (1, 2, 4)]
                self.assertEqual(len({run.digest for run in runs}), 1)
                self.assertLess(runs[0].records[-1]["loss"], runs[0].records[0]["loss"] + 0.5)


if __name__ == "__main__":
    python_package.run_tests()
