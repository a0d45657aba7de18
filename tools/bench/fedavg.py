"""FedAvg (McMahan et al. 2017) in Python, both halves, which tools/bench/python measures against the built-in one."""
import mneme


class FedAvg(mneme.Method):
    """FedAvg, as strategies/baselines/fedavg.cpp has it."""
    name = "fedavg-in-python"
    one_job = True

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train(start=broadcast.weights, loss=mneme.cross_entropy())
        return mneme.Upload(trained.weights, rows=trained.rows)

    class Server(mneme.AveragingServer):
        def close_round(self):
            self.weights = self.mean()
