"""Small run of LANDER's official program on rows, split and initial weights that mneme uses, too.

compare.py runs this file in a separate process: lander_run.py CHECKOUT FOLDER SEED METHOD. Split, start, scenario.toml
and trace.json are written into FOLDER.
"""
import os
import shutil
import sys

import torch
from torch import nn

import cifar_run
import shim
from cifar_run import CLASSES, CLIENTS, INCREMENT, TASKS, Rows, Trace
from lander import BackboneOf, Lander

ROUNDS, EMBEDDING = 5, 512
SMALL = {"tasks": TASKS, "increment": INCREMENT, "num_users": CLIENTS, "com_round": ROUNDS, "local_bs": 32,
         "synthesis_batch_size": 64, "g_steps": 10, "syn_round": 4, "warmup": 2}
STUDENT_STEPS, GENERATOR_WIDTH = 10, 16

SCENARIO = """title = "LANDER beside its authors' program, a small run"
seed = {seed}
{shared}
[rounds]
per_task = {rounds}
[training]
batch = 32
[strategy]
name = "lander"
preset = "official"
label_embeddings = "embeddings.safetensors"
generator_rounds = 6
warm_up = 2
generator_steps = 10
generator_batch = 64
generator_width = {width}
student_steps = {student}
student_batch = 32
"""


def small_run(folder, seed, embeddings):
    """Writes the split, the initial weights (the map's rows follow the head's), the anchors and mneme's scenario."""
    cifar_run.write_split(folder, seed)
    torch.manual_seed(seed)
    backbone, head = BackboneOf(1, EMBEDDING), nn.Linear(64, CLASSES)
    cifar_run.write_tensors(folder, "initial.safetensors", {
        **cifar_run.body_weights(backbone), "fc.weight": torch.cat([head.weight, backbone.mapping.weight]),
        "fc.bias": torch.cat([head.bias, backbone.mapping.bias])})
    cifar_run.write_tensors(folder, "embeddings.safetensors", {"embeddings": embeddings[:CLASSES]})
    with open(os.path.join(folder, "scenario.toml"), "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(seed=seed, shared=cifar_run.SCENARIO, rounds=ROUNDS, width=GENERATOR_WIDTH,
                                   student=STUDENT_STEPS))


def official_run(adapter, folder, seed):
    manager = Rows(adapter.data, adapter.rows_of, folder)
    trace = Trace(manager.tests())
    save_dir = os.path.join(folder, "pools")
    shutil.rmtree(save_dir, ignore_errors=True)
    os.makedirs("store", exist_ok=True)
    adapter.code.partition_data = manager.parts
    adapter.code.student_train_step = STUDENT_STEPS
    adapter.code.NLGenerator = lambda **named: adapter.generator_of(**{**named, "ngf": GENERATOR_WIDTH})
    shim.seed_all(seed)
    learner = adapter.learner(EMBEDDING, seed=seed, save_dir=save_dir, **SMALL)
    put_initial(learner._network.convnet, folder)
    cifar_run.watch_rounds(learner, trace)
    clock = shim.Clock()
    for task in range(TASKS):
        with shim.quiet():
            learner.incremental_train(manager)
        trace.note_task(learner._network, task)
        learner._known_classes = learner._total_classes
        learner._old_network = learner._network.copy().freeze()
    trace.write(folder, clock.seconds())


def put_initial(convnet, folder):
    """Sets the initial weights. The program draws the head's rows, as mneme does (new_class_head = "drawn")."""
    given = cifar_run.read_tensors(folder, "initial.safetensors")
    cifar_run.put_body(convnet, given)
    convnet.mapping.load_state_dict({end: given["fc." + end][CLASSES:] for end in ("weight", "bias")})


def main():
    checkout, folder, seed = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3])
    adapter = Lander()
    adapter.load(checkout)
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed, adapter.learner(EMBEDDING).label_emb)
    official_run(adapter, folder, seed)


if __name__ == "__main__":
    main()
