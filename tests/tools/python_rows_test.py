"""Rows named by a Python method: a client may name its own rows of this and earlier tasks only."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402

CLIENTS, ROWS = 3, 60
KEPT = []  # values stored by methods for assertions
SCENARIO = {"tasks": {"kind": "class-incremental", "count": 2}, "clients": {"count": CLIENTS},
            "rounds": {"per_task": 2, "cohort": CLIENTS}, "training": {"batch": 5, "learning_rate": 0.1},
            "model": {"name": "linear"}}


def data():
    """Row r has class r % 4; classes 0 and 1 are task 0."""
    labels = numpy.arange(ROWS) % 4
    rows = numpy.random.default_rng(1).normal(size=(ROWS, 6)).astype("float32")
    return mneme.Data(rows, labels, rows[:8], labels[:8])


def owner(row):
    return (row // 4) % CLIENTS


PARTITION = [owner(row) for row in range(ROWS)]


def held(client, tasks):
    """Returns the row numbers of the client in these tasks."""
    return [row for row in range(ROWS) if owner(row) == client and row % 4 // 2 in tasks]


class Runs(unittest.TestCase):
    def setUp(self):
        KEPT.clear()
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.scratch.name)  # data and partitions are written below runs/data
        self.count = 0

    def run_of(self, half, server=mneme.AveragingServer, scenario=SCENARIO, **attributes):
        """Runs a method with this client half."""
        self.count += 1
        method = type("Rows", (mneme.Method,), {"name": "py-rows", "client_round": half, "Server": server,
                                                **attributes})
        return mneme.run({**scenario, "strategy": {"name": "py-rows"}}, data=data(), partition=PARTITION,
                         methods=[method], out=os.path.join(self.scratch.name, str(self.count)))

    def assert_refused(self, half, words, **attributes):
        with self.assertRaisesRegex(mneme.RunFailed, words):
            self.run_of(half, **attributes)


def using(use):
    """Returns a client half that calls use(ctx, weights), which may yield jobs, and then trains."""
    def client_round(self, ctx, broadcast):
        jobs = use(ctx, broadcast.weights)
        if jobs is not None:
            yield jobs
        trained = yield ctx.train()
        return mneme.Upload(trained.weights, rows=trained.rows)
    return client_round


def foreign(ctx):
    """Returns two rows of the next client."""
    return held((ctx.client + 1) % CLIENTS, [ctx.place.task])[:2]


class Foreign(Runs):
    def test_rows_that_a_client_never_held_are_refused_by_name(self):
        words = r"python_rows_test.py:\d+: .*row \d+ does not belong to client \d"
        for use in (lambda ctx, w: ctx.train(rows=ctx.rows.pick(foreign(ctx))),
                    lambda ctx, w: ctx.train(rows=foreign(ctx)),
                    lambda ctx, w: ctx.train(rows=torch.tensor(foreign(ctx))),
                    lambda ctx, w: ctx.train(replay=foreign(ctx), replay_rows=2),
                    lambda ctx, w: ctx.extract(weights=w, rows=foreign(ctx)),
                    lambda ctx, w: ctx.statistics(weights=w, rows=numpy.array(foreign(ctx))),
                    lambda ctx, w: ctx.evaluate(weights=w, rows=tuple(foreign(ctx))),
                    lambda ctx, w: ctx.rows.pick(foreign(ctx)) and None,
                    lambda ctx, w: ctx.rows.at([0]).pick(foreign(ctx)) and None):
            self.assert_refused(using(use), words)

    def test_the_error_names_client_and_row(self):
        half = using(lambda ctx, w: ctx.rows.pick(held(2, [0])) and None if ctx.client == 1 else None)
        self.assert_refused(half, rf"row {held(2, [0])[0]} does not belong to client 1, which holds 10 rows now and 10")

    def test_rows_of_a_later_task_are_refused(self):
        self.assert_refused(using(lambda ctx, w: ctx.rows.pick(held(ctx.client, [1])) and None),
                            "row .* does not belong to client")

    def test_invalid_row_numbers_are_refused(self):
        for numbers, words in (([-1], "row -1 does not belong to client"),
                               ([10 ** 9], "row 1000000000 does not belong"),
                               ([0.5], "whole numbers"), ([True, False], "Bool of 1 axes; expected whole numbers"),
                               ([[0]], "of 2 axes"), (3, "of 0 axes"), ("ab", "expected a torch tensor"),
                               (None, "expected a torch tensor|whole numbers")):
            self.assert_refused(using(lambda ctx, w, numbers=numbers: ctx.rows.pick(numbers) and None), words)

    def test_stored_rows_of_another_client_are_refused(self):
        def use(ctx, weights):
            KEPT.append(ctx.rows)
            return ctx.train(rows=KEPT[0])
        self.assert_refused(using(use), r"ctx.train: rows are rows of client \d, but client \d requests the job")

    def test_rows_are_refused_after_their_run(self):
        self.run_of(using(lambda ctx, w: KEPT.append(ctx.rows)))
        for use in (lambda rows: rows.labels, lambda rows: rows.pick([0]), lambda rows: rows.at([0])):
            with self.assertRaisesRegex(ValueError, "after its end"):
                use(KEPT[0])


class Own(Runs):
    def test_rows_of_current_and_earlier_tasks_are_accepted(self):
        def use(ctx, weights):
            own = held(ctx.client, range(ctx.place.task + 1))
            picked = ctx.rows.pick(own[::-1] + own[:1])  # in any order and repeatedly
            KEPT.append((ctx.client, picked.numbers.tolist(), picked.labels.tolist()))
            return ctx.train(rows=picked)
        self.run_of(using(use))
        self.assertEqual(max(len(numbers) for _, numbers, _ in KEPT), 21)
        for client, numbers, labels in KEPT:
            self.assertEqual({owner(row) for row in numbers}, {client})
            self.assertEqual(labels, [row % 4 for row in numbers])

    def test_rows_of_clients_with_a_hidden_task_are_accepted(self):
        def use(ctx, weights):
            return ctx.train(rows=held(ctx.client, [0]))
        self.run_of(using(use), hide_task_from_clients=True)
        self.assert_refused(using(lambda ctx, w: ctx.train(rows=foreign(ctx))), "does not belong to client",
                            hide_task_from_clients=True)

    def test_row_numbers_of_any_integer_type_are_accepted(self):
        def use(ctx, weights):
            own = ctx.rows.numbers[:2]
            KEPT.append([own.tolist(), *(ctx.rows.pick(numbers).numbers.tolist() for numbers in (
                own, own.tolist(), own.numpy(), own.to(torch.int32), own.numpy().astype("uint16"), tuple(own.tolist()),
                range(int(own[0]), int(own[0]) + 2)))])
            KEPT.append([[], ctx.rows.pick([]).numbers.tolist()])
        self.run_of(using(use))
        for first, *others in KEPT:
            self.assertEqual(others, [first] * len(others))

    def test_rows_are_selected_by_positions_and_masks(self):
        def use(ctx, weights):
            own, rows = ctx.rows.numbers, ctx.rows
            for positions in ([0, 3], (0, 3), range(0, 6, 3), torch.tensor([0, 3]), numpy.array([0, 3]), [-10, -7],
                              torch.tensor([position in (0, 3) for position in range(10)]),
                              numpy.isin(numpy.arange(10), [0, 3]), [position in (0, 3) for position in range(10)]):
                KEPT.append((rows.at(positions).numbers.tolist(), own[[0, 3]].tolist()))
            KEPT.append((rows.at([1, 1]).numbers.tolist(), own[[1, 1]].tolist()))
            KEPT.append((rows.at([-1]).labels.tolist(), rows.labels[[-1]].tolist()))
            KEPT.append((rows.at([]).numbers.tolist(), []))
            return ctx.train(rows=rows.at(torch.arange(4)))
        self.run_of(using(use))
        for found, expected in KEPT:
            self.assertEqual(found, expected)

    def test_invalid_positions_are_refused(self):
        for positions, words in (([10], r"position 10 is out of range: client \d has 10 rows, at 0 to 9"),
                                 ([-11], "position -11 is out of range"), ([0.0], "whole numbers"),
                                 ([True], "mask of 1 axes and 1 bools; expected one bool for each of the 10 rows"),
                                 ([[0]], "2 axes"), (0, "0 axes")):
            self.assert_refused(using(lambda ctx, w, given=positions: ctx.rows.at(given) and None), words)

    def test_generated_rows_are_selected(self):
        def use(ctx, weights):
            made = ctx.rows_of(torch.zeros(3, 1, 1, 6), torch.zeros(3, dtype=torch.int64))
            KEPT.append((made.pick([2, 0]).numbers.tolist(), [2, 0]))
            KEPT.append((made.at([-1]).numbers.tolist(), [2]))
            return ctx.train(rows=made)
        self.run_of(using(use))
        for found, expected in KEPT:
            self.assertEqual(found, expected)
        for number in (3, -1):
            def use_of(ctx, weights, number=number):
                ctx.rows_of(torch.zeros(3, 1, 1, 6), torch.zeros(3).long()).pick([number])
            self.assert_refused(using(use_of), f"row {number} is not one of the 3 rows of this set")


class OnTheServer(Runs):
    def server(self, step):
        class Server(mneme.AveragingServer):
            def close_round(self):
                self.weights = self.mean()
                jobs = step(self)
                if jobs is not None:
                    yield jobs
        return Server

    def test_rows_of_clients_need_a_declaration(self):
        def step(server):
            return server.ctx.train(start=server.weights, rows=server.ctx.rows_of_task(0))
        self.assert_refused(using(lambda ctx, w: None), "central_data = True", server=self.server(step))
        self.run_of(using(lambda ctx, w: None), server=self.server(step), central_data=True)

    def test_unknown_tasks_and_rows_are_refused(self):
        for step, words in ((lambda server: server.ctx.rows_of_task(2) and None, "the run has the tasks 0 to 1"),
                            (lambda server: server.ctx.rows_of_task(-1) and None, "the run has the tasks 0 to 1"),
                            (lambda server: server.ctx.rows_of_task(0).pick([2]) and None,
                             "row 2 is not one of the 30"),
                            (lambda server: server.ctx.train(start=server.weights, rows=[0]), "expected rows")):
            self.assert_refused(using(lambda ctx, w: None), words, server=self.server(step), central_data=True)

    def test_the_server_cannot_use_rows_of_a_client(self):
        def keep(ctx, weights):
            KEPT.append(ctx.rows)

        def step(server):
            return server.ctx.train(start=server.weights, rows=KEPT[0])
        self.assert_refused(using(keep), r"rows are rows of client \d, but the server requests the job",
                            server=self.server(step))


if __name__ == "__main__":
    python_package.run_tests()
