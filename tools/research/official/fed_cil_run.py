"""Small run of FedCIL's official program: its server's loop, users and GAN, on features instead of images.

compare.py runs this file in a separate process: fed_cil_run.py CHECKOUT FOLDER SEED METHOD. Features are 32 principal
components of MNIST. Rows, split, start, scenario.toml and trace.json are written into FOLDER.
"""
import gzip
import json
import os
import sys
import types

import numpy
import torch
from torch import nn

import shim
from cifar_run import CLIENTS, write_partition
from fed_cil import Critic, FedCil, Generator
from shim import Refused

TASKS, CLASSES = 5, 10  # five tasks are fixed in the program
PER_CLASS, TEST_PER_CLASS, ROUNDS = 200, 100, 4
FEATURES, CODE, GENERATOR, CRITIC, STEPS, CONSOLIDATION, RATE = 32, 110, 128, 64, 40, 20, 1e-3

SCENARIO = f"""title = "FedCIL beside its authors' program, a small run"
seed = {{seed}}
[data]
name = "arrays"
file = "rows.npz"
[tasks]
count = {TASKS}
[partition]
kind = "file"
file = "partition.csv"
[clients]
count = {CLIENTS}
[rounds]
per_task = {ROUNDS}
[model]
name = "linear"
weights = "as-drawn"
[evaluation]
every = 1
[strategy]
name = "fed-cil"
preset = "as-published"
generator_width = {GENERATOR}
critic_width = {CRITIC}
local_steps = {STEPS}
consolidation_steps = {CONSOLIDATION}
gan_rate = {RATE}
"""


# -- Inputs of both sides ---------------------------------------------------------------------------------------------

def mnist(part):
    """Images [N, 784] float and labels [N] of MNIST."""
    def read(name, header):
        for folder in os.environ.get("MNEME_DATA", "").split(os.pathsep):
            path = os.path.join(folder, "mnist", name + ".gz")
            if os.path.exists(path):
                with gzip.open(path) as file:
                    return numpy.frombuffer(file.read(), numpy.uint8, offset=header)
        raise Refused(f"no mnist/{name}.gz below MNEME_DATA; expected a folder with MNIST (tools/fetch_data mnist)")
    return (read(f"{part}-images-idx3-ubyte", 16).reshape(-1, 784) / 255.0,
            read(f"{part}-labels-idx1-ubyte", 8).astype(numpy.int64))


def first_of_each(rows, labels, count):
    places = numpy.sort(numpy.concatenate([numpy.flatnonzero(labels == c)[:count] for c in range(CLASSES)]))
    return rows[places], labels[places]


def small_run(folder, seed):
    """Writes rows of components, of which the first has a deviation of 1, the split, and mneme's scenario."""
    (x, y), (u, v) = first_of_each(*mnist("train"), PER_CLASS), first_of_each(*mnist("t10k"), TEST_PER_CLASS)
    middle = x.mean(0)
    _, scales, directions = numpy.linalg.svd(x - middle, full_matrices=False)
    basis = directions[:FEATURES].T / (scales[0] / len(x) ** 0.5)
    numpy.savez(os.path.join(folder, "rows.npz"), train_x=((x - middle) @ basis).astype(numpy.float32), train_y=y,
                test_x=((u - middle) @ basis).astype(numpy.float32), test_y=v)
    write_partition(folder, seed, [numpy.flatnonzero(y == label) for label in range(CLASSES)])
    with open(os.path.join(folder, "scenario.toml"), "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(seed=seed))


# -- The official side ------------------------------------------------------------------------------------------------

ARGUMENTS = {"dataset": "Mnist-cl-5", "num_glob_iters": ROUNDS * TASKS, "local_epochs": STEPS, "batch_size": 32,
             "gen_batch_size": 32, "learning_rate": 0.01, "K": 1, "num_users": CLIENTS, "beta": 1.0, "lamda": 1,
             "algorithm": "FedCL", "result_path": "results", "generator_z_size": CODE, "generator_c_channel_size": 4,
             "generator_g_channel_size": 4, "beta1": 0.5, "beta2": 0.99, "lr": RATE, "weight_decay": 1e-5,
             "generator_lambda": 10.0, "offline": 0, "naive": 0, "only_critic": False, "fedavg": 0, "fedlwf": 0,
             "fedcl": 1, "md_iter": CONSOLIDATION, "visual": 0}


def rows_of_users(folder):
    """Replaces read_user_data_cl(): (user, task) -> (id, training rows, test rows, {"labels": classes})."""
    arrays = numpy.load(os.path.join(folder, "rows.npz"))
    clients, rows = numpy.loadtxt(os.path.join(folder, "partition.csv"), delimiter=",", skiprows=1, dtype=int).T
    owner = numpy.empty(len(arrays["train_y"]), int)
    owner[rows] = clients

    def read(user, _, dataset=None, count_labels=False, task=0):
        labels = arrays["train_y"]
        places = numpy.flatnonzero((owner == user) & (labels // (CLASSES // TASKS) == task))
        own = [(torch.from_numpy(arrays["train_x"][i]), torch.tensor(labels[i])) for i in places]
        known = {"labels": sorted(set(labels[places].tolist()))}
        return (f"f{user}", own, own[:1], known) if count_labels else (f"f{user}", own, own[:1])
    return read, torch.from_numpy(arrays["test_x"]), torch.from_numpy(arrays["test_y"])


def official_run(adapter, folder, seed):
    import FLAlgorithms.servers.serverpFedCL as code
    read, tests, labels = rows_of_users(folder)
    gan_of = code.WGAN

    def feature_gan(**named):
        gan = gan_of(**named)
        gan.num_classes = CLASSES
        gan.generator, gan.critic = Generator(CODE, GENERATOR, FEATURES), Critic(FEATURES, CRITIC, CLASSES)
        return gan
    code.WGAN, code.read_user_data_cl, code.read_data = feature_gan, read, lambda _: [list(range(CLIENTS))]
    code.FedCL.gaussian_intiailize = lambda *_, **__: None  # PyTorch's initialization, which mneme uses
    shim.seed_all(seed)
    with shim.quiet():
        server = code.FedCL(types.SimpleNamespace(**ARGUMENTS), (nn.Linear(1, 1), "none"), seed)
    server.evaluate_all_ = server.save_results = server.save_model = lambda *_, **__: None
    trace = {"rounds": [], "tasks": []}
    consolidate = server.fine_tune_generator

    def consolidated(arguments):
        consolidate(arguments)
        note_round(server, trace, tests, labels)
    server.fine_tune_generator = consolidated
    clock = shim.Clock()
    with shim.quiet():
        server.train(types.SimpleNamespace(**ARGUMENTS))
    trace["cpu_seconds"] = clock.seconds()
    return trace


def note_round(server, trace, tests, labels):
    """Evaluates the server's critic on the test rows of all classes so far; after a task's last round, on those of each
    task."""
    each = CLASSES // TASKS
    seen = each * (server.current_task + 1)
    among = labels < seen
    with torch.no_grad():
        logits = server.generator.critic(tests[among])[2][:, :seen]
    right, tasks = (logits.argmax(1) == labels[among]).float() * 100, labels[among] // each
    trace["rounds"].append({"accuracy": right.mean().item(),
                            "loss": nn.functional.cross_entropy(logits, labels[among]).item()})
    if len(trace["rounds"]) % ROUNDS == 0:
        trace["tasks"].append([right[tasks == task].mean().item() for task in range(server.current_task + 1)])


def main():
    checkout, folder, seed = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed)
    adapter = FedCil()
    adapter.load(checkout)
    trace = official_run(adapter, folder, seed)
    with open(os.path.join(folder, "trace.json"), "w", encoding="utf-8") as file:
        json.dump(trace, file)


if __name__ == "__main__":
    main()
