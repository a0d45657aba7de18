"""FedAvg (McMahan et al. 2017) with both halves in Python; tools/bench/python compares it with the built-in method."""
import mneme


class FedAvg(mneme.Method):
    """FedAvg, equal to strategies/baselines/fedavg.cpp."""
    name = "fedavg-in-python"
    single_training_job = True

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.cross_entropy())
        return mneme.Upload(trained.weights, rows=trained.rows)

    class Server(mneme.AveragingServer):
        def close_round(self):
            self.weights = self.mean()
