"""The federation that all three simulators run: LeNet on generated images, FedAvg, every client in every round. Flower
and FedLab train clients with these functions, whose random draws use a seed of client and round."""
import hashlib
import os
import time

CLIENTS, ROWS, CLASSES, BATCH, LEARNING_RATE, SEED = 8, 96, 10, 16, 0.05, 1
SHAPE = (1, 28, 28)
DELAYS = {"none": lambda client: 0.0, "rising": lambda client: 0.05 * client,
          "falling": lambda client: 0.05 * (CLIENTS - 1 - client)}
CHECKPOINT = "checkpoint.pt"


def rows():
    """(uint8 images, labels) of all clients; client c holds the rows c * ROWS to (c + 1) * ROWS - 1."""
    import numpy
    drawn = numpy.random.Generator(numpy.random.PCG64(SEED))
    labels = drawn.integers(0, CLASSES, CLIENTS * ROWS)
    pictures = drawn.integers(0, 128, (CLIENTS * ROWS, *SHAPE))
    pictures[:, 0, 4:24, 4:24] += 12 * labels[:, None, None]
    return pictures.astype("uint8"), labels.astype("int64")


def rows_of(client):
    import torch
    pictures, labels = rows()
    mine = slice(client * ROWS, (client + 1) * ROWS)
    return torch.from_numpy(pictures[mine]).float() / 255.0, torch.from_numpy(labels[mine])


def net():
    """mneme's `lenet` for 28 x 28 pixels."""
    import torch
    from torch import nn
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES))


def train(model, client, round_number, delays):
    """One epoch of SGD of the client in this round, counted from 1 over the whole run; then its delay."""
    import torch
    torch.manual_seed(hash((SEED, client, round_number)))
    inputs, labels = rows_of(client)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
    loss = torch.nn.CrossEntropyLoss()
    model.train()
    for batch in torch.randperm(ROWS).split(BATCH):
        optimizer.zero_grad(set_to_none=True)
        loss(model(inputs[batch]), labels[batch]).backward()
        optimizer.step()
    time.sleep(DELAYS[delays](client))


def digest_of(state):
    """Digest of the bytes of all weights. @param state from state_dict()"""
    taken = hashlib.sha256()
    for value in state.values():
        taken.update(value.detach().cpu().numpy().tobytes())
    return taken.hexdigest()


def keep(folder, round_number, state):
    """Saves a checkpoint, which atomically replaces the previous one."""
    import torch
    torch.save({"round": round_number, "state": state}, os.path.join(folder, "part"))
    os.replace(os.path.join(folder, "part"), os.path.join(folder, CHECKPOINT))


def kept(folder):
    """Returns (round, state) of the checkpoint; if there is none, round 0 and a new net."""
    import torch
    path = os.path.join(folder, CHECKPOINT)
    if not os.path.exists(path):
        return 0, net().state_dict()
    loaded = torch.load(path)
    return loaded["round"], loaded["state"]


def peer_arguments(text):
    """Parses the command line of both programs."""
    import argparse
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("folder", help="folder of checkpoints; a run resumes from the one in it")
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--delays", choices=sorted(DELAYS), default="none")
    return parser.parse_args()
