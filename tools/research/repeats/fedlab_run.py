"""fedlab_run.py FOLDER --rounds N: runs the federation in FedLab's standalone simulation, in which clients run one
after another. Prints the model's digest. --threads N: number of PyTorch threads."""
from federation import CLIENTS, digest_of, keep, kept, net, peer_arguments, train


def pipeline_of(given, begun):
    from fedlab.contrib.algorithm.basic_server import SyncServerHandler
    from fedlab.core.client.trainer import SerialClientTrainer
    from fedlab.core.standalone import StandalonePipeline

    class Trainer(SerialClientTrainer):
        """Trainer that counts rounds itself, because FedLab does not pass them."""

        def __init__(self):
            super().__init__(net(), CLIENTS, cuda=False)
            self.round_number, self.uploads = begun, []

        @property
        def uplink_package(self):
            uploads, self.uploads = self.uploads, []
            return uploads

        def local_process(self, payload, id_list):
            self.round_number += 1
            for client in id_list:
                self.set_model(payload[0])
                train(self._model, client, self.round_number, given.delays)
                self.uploads.append([self.model_parameters])

    class Pipeline(StandalonePipeline):
        def evaluate(self):
            keep(given.folder, self.handler.round, self.handler.model.state_dict())

    handler = SyncServerHandler(net(), given.rounds, sample_ratio=1.0)
    handler.round = begun
    return Pipeline(handler, Trainer())


def main():
    given = peer_arguments(__doc__)
    import torch
    torch.set_num_threads(given.threads)
    begun, state = kept(given.folder)
    pipeline = pipeline_of(given, begun)
    pipeline.handler.model.load_state_dict(state)
    pipeline.main()
    print(digest_of(pipeline.handler.model.state_dict()))


if __name__ == "__main__":
    main()
