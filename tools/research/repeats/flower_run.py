"""flower_run.py FOLDER --rounds N: runs the federation in Flower's simulation with its FedAvg. Prints the model's
digest. --threads N: number of concurrent clients, each on one thread, as in Flower's backend."""
import logging

from federation import CLIENTS, ROWS, digest_of, keep, kept, net, peer_arguments, train


def client_app(delays):
    from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
    from flwr.clientapp import ClientApp
    app = ClientApp()

    @app.train()
    def train_client(message, context):
        import torch
        torch.set_num_threads(1)
        model = net()
        model.load_state_dict(message.content["arrays"].to_torch_state_dict())
        config = message.content["config"]
        train(model, int(context.node_config["partition-id"]), config["rounds-before"] + config["server-round"], delays)
        return Message(content=RecordDict({"arrays": ArrayRecord(model.state_dict()),
                                           "metrics": MetricRecord({"num-examples": ROWS})}), reply_to=message)

    return app


def server_app(given, begun, state):
    """Runs the missing rounds. Writes a checkpoint to `given.folder` after each, and the last model to `state`."""
    from flwr.app import ArrayRecord, ConfigRecord
    from flwr.serverapp import ServerApp
    from flwr.serverapp.strategy import FedAvg
    app = ServerApp()

    def after_round(number, arrays):
        if number > 0:
            state.update(arrays.to_torch_state_dict())
            keep(given.folder, begun + number, dict(state))

    @app.main()
    def main(grid, context):
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=CLIENTS, min_available_nodes=CLIENTS)
        strategy.start(grid=grid, initial_arrays=ArrayRecord(state), num_rounds=given.rounds - begun,
                       train_config=ConfigRecord({"rounds-before": begun}), evaluate_fn=after_round)

    return app


def main():
    given = peer_arguments(__doc__)
    from flwr.simulation import run_simulation
    logging.getLogger("flwr").setLevel(logging.ERROR)
    begun, state = kept(given.folder)
    if begun < given.rounds:
        run_simulation(server_app=server_app(given, begun, state), client_app=client_app(given.delays),
                       num_supernodes=CLIENTS,
                       backend_config={"init_args": {"num_cpus": given.threads},
                                       "client_resources": {"num_cpus": 1, "num_gpus": 0.0}})
    done, last = kept(given.folder)
    if done != given.rounds:
        raise SystemExit(f"flower_run.py: ended after round {done} of {given.rounds}")
    print(digest_of(last))


if __name__ == "__main__":
    main()
