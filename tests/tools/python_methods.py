"""Methods in Python for tests of the package; docs/python.md shows the first of them."""
import mneme
import torch


class FedAvgM(mneme.Method):                                   # Hsu et al. 2019
    name = "my-fedavgm"
    beta = mneme.key(0.9, low=0.0, high=1.0, help="Momentum of the server's step.")

    def client_round(self, ctx, broadcast):             # a generator: it names jobs, the engine runs and fuses them
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.cross_entropy())
        return mneme.Upload(trained.weights, rows=trained.rows)

    class Server(mneme.AveragingServer):
        def close_round(self):
            mean = self.mean()
            self.velocity = self.method.beta * self.velocity + (mean - self.weights)
            self.weights = self.weights + self.velocity


class FedAvg(mneme.Method):
    """FedAvg (McMahan et al. 2017), like strategies/baselines/fedavg.cpp."""
    name = "py-fedavg"
    single_training_job = True

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.cross_entropy())
        return mneme.Upload(trained.weights, rows=trained.rows)

    class Server(mneme.AveragingServer):
        def close_round(self):
            self.weights = self.mean()


class FedProx(mneme.Method):
    """FedProx (Li et al. 2020), like strategies/baselines/fedprox.cpp."""
    name = "py-fedprox"
    single_training_job = True
    mu = mneme.key(0.01, low=0.0, help="Weight of the proximal term.")

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.proximal(self.mu))
        return mneme.Upload(trained.weights, rows=trained.rows)


class Scaffold(mneme.Method):
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1, option II); uploads have equal weights."""
    name = "py-scaffold"
    round_barrier = True
    defaults = {"strategy": {"weighting": "uniform"}}

    def client_round(self, ctx, broadcast):
        start, server = broadcast.weights, broadcast["control"]
        own = ctx.memory.get("control", torch.zeros_like(start))
        trained = yield ctx.train(start=start, loss=mneme.corrected(), side={"correction": server - own})
        batch = self.setup.batch or max(len(ctx.rows), 1)
        steps = self.setup.epochs * -(-len(ctx.rows) // batch)
        fresh = own
        if steps:
            fresh = own - server + (start - trained.weights) / (steps * self.setup.learning_rate)
        return mneme.Upload(trained.weights, tensors={"control": fresh - own}, rows=trained.rows,
                            memory={"control": fresh})

    class Server(mneme.AveragingServer):
        def __init__(self, method):
            super().__init__(method)
            self.control = torch.zeros_like(method.setup.initial)
            self.uploads = 0

        def open_round(self):
            return {"control": self.control}

        def fold(self, upload):
            super().fold(upload)
            self.uploads += upload.rows > 0

        def close_round(self):
            change = self.mean("control")
            self.weights = self.mean()
            if change is not None:
                self.control = self.control + change * (self.uploads / self.method.setup.clients)
            self.uploads = 0


class Replay(mneme.Method):
    """Keeps the numbers of rows of earlier tasks, and replays some of them in every step."""
    name = "py-replay"
    kept = mneme.key(10, low=0, help="Rows remembered of each task.")

    def client_round(self, ctx, broadcast):
        known = ctx.memory.get("rows", torch.empty(0, dtype=torch.int64))
        replay = {"replay": known, "replay_rows": 8} if len(known) else {}
        trained = yield ctx.train(start=broadcast.weights, **replay)
        memory = None
        if int(ctx.memory.get("task", -1)) != ctx.place.task:
            order = ctx.random().permutation(len(ctx.rows))[:self.kept]
            memory = {"rows": torch.cat([known, ctx.rows.numbers[order]]), "task": torch.tensor([ctx.place.task])}
        return mneme.Upload(trained.weights, rows=trained.rows, memory=memory)


class Icarl(mneme.Method):
    """Replay as in iCaRL (Rebuffi et al. 2017): exemplars by herding (Algorithm 4), distillation from the model at
    the start of the task (eq. 2, with a softmax)."""
    name = "py-icarl"
    kept = mneme.key(3, low=1, help="Exemplars of each class.")
    weight = mneme.key(1.0, low=0.0, help="Weight of distillation.")

    def client_round(self, ctx, broadcast):
        place, known = ctx.place, ctx.memory.get("rows", torch.empty(0, dtype=torch.int64))
        options = {"replay": known, "replay_rows": 8} if len(known) else {}
        if place.task > 0:
            options.update(loss=mneme.cross_entropy() + mneme.distillation(self.weight), teacher=broadcast["teacher"],
                           taught=range(place.current_classes.start))
        trained = yield ctx.train(start=broadcast.weights, **options)
        memory = None
        if place.round_of_task + 1 == place.rounds_of_task and len(ctx.rows):
            shown = yield ctx.extract(weights=trained.weights)
            chosen = ctx.rows.numbers[self.herded(shown.features, shown.labels)]
            memory = {"rows": torch.cat([known, chosen])}
        return mneme.Upload(trained.weights, rows=trained.rows, memory=memory)

    def herded(self, features, labels):
        """Returns the positions of the rows whose mean stays closest to the class mean."""
        chosen = []
        for label in labels.unique().tolist():
            places = (labels == label).nonzero().flatten().tolist()
            unit = torch.nn.functional.normalize(features[places], dim=1)
            left, total = list(range(len(places))), torch.zeros_like(unit[0])
            for count in range(1, min(self.kept, len(places)) + 1):
                gaps = [float((unit.mean(0) - (total + unit[at]) / count).norm()) for at in left]
                at = left.pop(gaps.index(min(gaps)))
                total = total + unit[at]
                chosen.append(places[at])
        return torch.tensor(chosen, dtype=torch.int64)

    class Server(mneme.AveragingServer):
        teacher = None

        def open_round(self):
            if self.place.round_of_task == 0:
                self.teacher = self.weights.clone()
            return {"teacher": self.teacher}


class OwnServer(mneme.Method):
    """FedAvg with uniform weights and a server half that is entirely in Python."""
    name = "py-own-server"

    class Server(mneme.Server):
        def __init__(self, method):
            super().__init__(method)
            self.sum, self.count = torch.zeros_like(self.weights, dtype=torch.float64), 0

        def fold(self, upload):
            self.sum += upload.weights.double()
            self.count += 1

        def close_round(self):
            self.weights = (self.sum / self.count).float()
            told = yield self.ctx.evaluate(rows=self.ctx.rows_of(self.image, self.label)) if self.count else ()
            self.asked = told.rows
            self.sum.zero_()
            self.count = 0

        image = torch.zeros(1, 1, 1, 64, dtype=torch.uint8)
        label = torch.zeros(1, dtype=torch.int64)


class Sum(mneme.Method):
    """FedProx with an additional teacher."""
    name = "py-sum"
    weight = mneme.key(0.5, low=0.0, help="Weight of distillation.")

    def client_round(self, ctx, broadcast):
        loss = mneme.proximal(0.01) + mneme.distillation(self.weight, temperature=3.0)
        trained = yield ctx.train(start=broadcast.weights, loss=loss, teacher=broadcast.weights)
        return mneme.Upload(trained.weights, rows=trained.rows)


class SquaredError(mneme.Method):
    """FedAvg with a loss in Python."""
    name = "py-squared-error"

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.loss(squared_error))
        return mneme.Upload(trained.weights, rows=trained.rows)


def squared_error(logits, labels):
    target = torch.nn.functional.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return ((logits.softmax(1) - target) ** 2).sum(1)
