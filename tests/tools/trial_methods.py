"""Eight usual methods in Python for tests of the package."""
import mneme
import torch
from python_methods import FedAvg, Icarl

__all__ = ["FedAvg", "Icarl", "Ewc", "MeanTeacher", "Clusters", "UserPrivacy", "TopK", "Buffered", "ALL"]


class Ewc(mneme.Method):
    """EWC (Kirkpatrick et al. 2017, eq. 3) on each client, with the Fisher information of its own rows."""
    name = "trial-ewc"
    strength = mneme.key(1.0, low=0.0, help="Weight of the penalty.")

    def client_round(self, ctx, broadcast):
        loss, memory = mneme.cross_entropy(), None
        if ctx.memory:
            loss += self.strength * mneme.quadratic(ctx.memory["anchor"], ctx.memory["fisher"])
        trained = yield ctx.train(start=broadcast.weights, loss=loss)
        if ctx.place.round_of_task + 1 == ctx.place.rounds_of_task and len(ctx.rows):
            squares = yield ctx.train(start=trained.weights, result="squared-gradients", batch=1, epochs=1)
            fisher = squares.gradients + ctx.memory.get("fisher", 0.0)
            memory = {"anchor": trained.weights, "fisher": fisher}
        return mneme.Upload(trained.weights, rows=trained.rows, memory=memory)


class MeanTeacher(mneme.Method):
    """FedProx (Li et al. 2020) with a mean teacher: distillation from a moving average of the server's weights
    (Tarvainen and Valpola 2017)."""
    name = "trial-mean-teacher"
    decay = mneme.key(0.9, low=0.0, high=1.0, help="Decay of the moving average per round.")

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.proximal(0.01) + mneme.distillation(1.0),
                                  teacher=broadcast["teacher"], taught=ctx.place.seen_classes)
        return mneme.Upload(trained.weights, rows=trained.rows)

    class Server(mneme.AveragingServer):
        teacher = None

        def open_round(self):
            old = self.weights if self.teacher is None else self.teacher
            self.teacher = self.method.decay * old + (1 - self.method.decay) * self.weights
            return {"teacher": self.teacher}


class Clusters(mneme.Method):
    """IFCA (Ghosh et al. 2020, Algorithm 1, model averaging) with two clusters."""
    name = "py-ifca"

    def client_round(self, ctx, broadcast):
        losses = []
        for number in range(2):
            losses.append((yield ctx.evaluate(weights=broadcast[f"cluster{number}"], rows=ctx.rows)).loss)
        chosen = losses.index(min(losses))
        trained = yield ctx.train(start=broadcast[f"cluster{chosen}"])
        return mneme.Upload(trained.weights, tensors={"cluster": torch.tensor([float(chosen)])}, rows=trained.rows)

    class Server(mneme.Server):
        sends_weights = False

        def __init__(self, method):
            super().__init__(method)
            shift = torch.linspace(-0.1, 0.1, len(self.weights))
            self.models = [self.weights, self.weights + shift]
            self.sums, self.rows, self.cluster_of = [0.0, 0.0], [0, 0], {}

        def open_round(self):
            return {f"cluster{number}": model for number, model in enumerate(self.models)}

        def fold(self, upload):
            number = int(upload["cluster"])
            self.cluster_of[str(upload.client)] = number
            self.sums[number] = self.sums[number] + upload.rows * upload.weights.double()
            self.rows[number] += upload.rows

        def close_round(self):
            for number, rows in enumerate(self.rows):
                if rows:
                    self.models[number] = (self.sums[number] / rows).float()
            self.sums, self.rows = [0.0, 0.0], [0, 0]

        def predict(self, client=None):
            return self.models[0 if client is None else self.cluster_of.get(str(client), 0)]


class UserPrivacy(mneme.Method):
    """DP-FedAvg (McMahan et al. 2018, Algorithm 1): clipped updates, Gaussian noise at the server."""
    name = "trial-user-privacy"
    clip = mneme.key(0.5, low=1e-9, help="Norm of an update.")
    noise = mneme.key(0.1, low=0.0, help="Standard deviation of the noise, in clipping norms.")
    defaults = {"strategy": {"weighting": "uniform"}}

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights)
        update = trained.weights - broadcast.weights
        update = update * min(1.0, self.clip / max(float(update.norm()), 1e-12))
        return mneme.Upload(broadcast.weights + update, rows=trained.rows)

    class Server(mneme.AveragingServer):
        uploads = 0

        def fold(self, upload):
            super().fold(upload)
            self.uploads += 1

        def close_round(self):
            random, deviation = self.ctx.random(), self.method.noise * self.method.clip / self.uploads
            noise = torch.tensor([random.normal() for _ in range(len(self.weights))])
            self.weights, self.uploads = self.mean() + deviation * noise, 0


class TopK(mneme.Method):
    """The largest entries of each update, with error feedback (Stich et al. 2018, Algorithm 1)."""
    name = "trial-top-k"
    share = mneme.key(0.05, low=0.0, high=1.0, help="Share of the entries that a client uploads.")

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights)
        update = trained.weights - broadcast.weights + ctx.memory.get("error", 0.0)
        index = update.abs().topk(max(1, int(self.share * len(update)))).indices
        error = update.index_fill(0, index, 0.0)
        return mneme.Upload(tensors={"index": index, "value": update[index]}, rows=trained.rows,
                            memory={"error": error})

    class Server(mneme.Server):
        def __init__(self, method):
            super().__init__(method)
            self.sum, self.rows = torch.zeros_like(self.weights, dtype=torch.float64), 0

        def fold(self, upload):
            self.sum = self.sum.index_add(0, upload["index"], upload.rows * upload["value"].double())
            self.rows += upload.rows

        def close_round(self):
            self.weights = (self.weights + self.sum / self.rows).float()
            self.sum, self.rows = torch.zeros_like(self.sum), 0


class Buffered(mneme.Method):
    """FedBuff (Nguyen et al. 2022, Algorithm 1) with updates scaled by 1 / sqrt(1 + staleness)."""
    name = "trial-fedbuff"

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights)
        return mneme.Upload(tensors={"update": trained.weights - broadcast.weights}, rows=trained.rows)

    class Server(mneme.Server):
        def __init__(self, method):
            super().__init__(method)
            self.sum, self.uploads = torch.zeros_like(self.weights, dtype=torch.float64), 0

        def fold(self, upload):
            self.sum = self.sum + upload["update"].double() / (1 + upload.staleness) ** 0.5
            self.uploads += 1

        def close_round(self):
            self.weights = (self.weights + self.sum / self.uploads).float()
            self.sum, self.uploads = torch.zeros_like(self.sum), 0


ALL = [FedAvg, Ewc, MeanTeacher, Icarl, Clusters, UserPrivacy, TopK, Buffered]
