"""Small run of STSA's repository: STSA itself, its estimate from class sums, its EWC or its LwF.

compare.py runs this file in a separate process: stsa_run.py CHECKOUT FOLDER SEED METHOD, with METHOD stsa, stsa-e,
fed-ewc or fed-lwf. Split, start, scenario.toml and trace.json are written into FOLDER.
"""
import copy
import os
import sys

import numpy
import torch

import cifar_run
import shim
from cifar_run import CLASSES, CLIENTS, INCREMENT, TASKS, Rows, Trace
from stsa import Stsa

ROUNDS, WIDTH, RIDGE, DUMMIES = 5, 200, 10.0, 4

SCENARIO = """title = "{method} beside the program of STSA's authors, a small run"
seed = {seed}
{shared}
[training]
batch = 32
{strategy}
"""
STATISTICS = f"""[strategy]
name = "stsa"
preset = "official"
adaptation_rounds = {ROUNDS}
projection_file = "projection.safetensors"
ridge = {RIDGE}
dummies = {DUMMIES}
estimator = "%s"
"""
TRAINING = f"""[rounds]
per_task = {ROUNDS}
[strategy]
name = "%s"
preset = "official"
"""
STRATEGIES = {"stsa": STATISTICS % "exact", "stsa-e": STATISTICS % "estimated", "fed-ewc": TRAINING % "fed-ewc",
              "fed-lwf": TRAINING % "fed-lwf"}


def small_run(folder, seed, method):
    """Writes the split, the initial weights, the projection and mneme's scenario."""
    cifar_run.write_split(folder, seed)
    torch.manual_seed(seed)
    body = cifar_run.body_weights(cifar_run.Features())
    bound = 64 ** -0.5 if method.startswith("stsa") else (3 / 64) ** 0.5  # bound of the programs' initial heads
    head = {"fc.weight": torch.empty(CLASSES, 64).uniform_(-bound, bound)}
    head.update({"fc.sigma": torch.ones(1)} if method.startswith("stsa") else {"fc.bias": torch.zeros(CLASSES)})
    cifar_run.write_tensors(folder, "initial.safetensors", {**body, **head})
    cifar_run.write_tensors(folder, "projection.safetensors", {"W_R": torch.randn(64, WIDTH)})
    with open(os.path.join(folder, "scenario.toml"), "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(method=method, seed=seed, shared=cifar_run.SCENARIO, strategy=STRATEGIES[method]))


def arguments(seed, method):
    return {"dataset": "cifar100", "net": "resnet8", "tasks": TASKS, "increment": INCREMENT, "seed": seed, "wandb": 0,
            "save_dir": "run", "nums": 0, "num_users": CLIENTS, "com_round": ROUNDS, "local_ep": 2, "local_bs": 32,
            "local_lr": 0.04, "weight_decay": 5e-4, "beta": 0.5, "frac": 1.0, "M": WIDTH, "ridge": RIDGE,
            "dummy": DUMMIES, "type": int(method == "stsa-e")}


# -- Start ------------------------------------------------------------------------------------------------------------

def start_statistics(learner, given, projection):
    """Sets a cosine head with the given rows, and the file's W_R instead of the matrix that setup_RP draws."""
    net = learner._network
    net.update_fc(INCREMENT)
    with torch.no_grad():
        net.fc.weight.copy_(given["fc.weight"][:INCREMENT])

    def setup():
        type(learner).setup_RP(learner)
        learner.W_rand = net.W_rand = projection
    learner.setup_RP = setup
    learner.per_cls_acc = lambda *_: numpy.zeros(1)  # used only for printing


def start_training(learner, given):
    """Sets rows of the head when they are added; also declares that EWC's class has no projection, which its code
    omits."""
    net, grow = learner._network, learner._network.update_fc1

    def grown(classes):
        old = net.fc.out_features if net.fc is not None else 0
        grow(classes)
        net.fc.W_rand = None
        with torch.no_grad():
            net.fc.weight[old:].copy_(given["fc.weight"][old:classes])
    net.update_fc1 = grown


def official_run(adapter, folder, seed, method):
    code = {"fed-ewc": adapter.ewc, "fed-lwf": adapter.lwf}.get(method, adapter.stsa)
    import utils.data
    import utils.inc_net
    from utils.data_manager import DummyDataset
    utils.inc_net.get_convnet = lambda args, pretrained=False: cifar_run.Features()
    manager = Rows(utils.data, DummyDataset, folder)
    code.partition_data = manager.parts
    shim.seed_all(seed)
    trace = Trace(manager.tests())
    with shim.quiet():
        learner = getattr(code, {"fed-ewc": "EWC", "fed-lwf": "LwF"}.get(method, "STSA"))(arguments(seed, method))
        given = cifar_run.read_tensors(folder, "initial.safetensors")
        cifar_run.put_body(learner._network.convnet, given)
        if method.startswith("stsa"):
            start_statistics(learner, given, cifar_run.read_tensors(folder, "projection.safetensors")["W_R"])
        else:
            start_training(learner, given)
    note_averages(code, learner, trace)
    torch.save = lambda *_: None
    clock = shim.Clock()
    for task in range(TASKS):
        with shim.quiet():
            learner.incremental_train(manager)
            if method.startswith("stsa"):
                trace.note_round(learner._network, task)  # the round of statistics
            trace.note_task(learner._network, task)
            learner.after_task()
    trace.write(folder, clock.seconds())


def note_averages(code, learner, trace):
    """Evaluates every average before it becomes the net, because the program evaluates less often, or only clients."""
    learner._compute_accuracy = lambda *_: 0.0
    average = code.average_weights

    def averaged(weights):
        whole, shown = average(weights), copy.deepcopy(learner._network)
        shown.load_state_dict(whole)
        trace.note_round(shown, learner._cur_task)
        return whole
    code.average_weights = averaged


def main():
    checkout, folder, seed, method = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3]), \
        sys.argv[4]
    adapter = Stsa()
    adapter.load(checkout)
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed, method)
    official_run(adapter, folder, seed, method)


if __name__ == "__main__":
    main()
