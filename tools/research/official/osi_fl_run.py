"""Small run of OSI-FL's server, or of OSCAR's, on images made by mneme's generator.

compare.py runs this file in a separate process: osi_fl_run.py CHECKOUT FOLDER SEED METHOD, with METHOD osi-fl or oscar
and mneme's program in $MNEME. The programs train on images made by Stable Diffusion, which is too slow for a small run.
Instead mneme generates digits from the means that clients send and writes them to samples.png, and both sides train on
these. Rows, start, scenario.toml and trace.json are written into FOLDER, generated images into FOLDER/made.
"""
import json
import os
import shutil
import subprocess
import sys

import numpy
import torch
from torch import nn

import shim
from cifar_run import Trace, judged, read_tensors, write_tensors
from fed_cil_run import CLASSES, TEST_PER_CLASS, first_of_each, mnist
from osi_fl import OsiFl
from oscar import Oscar
from shim import Refused
from torchvision_reference import CifarResNet

TASKS, PER_CLASS, MADE, SIDE = 5, 300, 50, 16
KEPT, RATE, EPOCHS = 20, 0.01, 20  # rows that OSI-FL retains per class and task; passes of OSCAR's training

SCENARIO = f"""title = "{{method}} beside its authors' program, a small run"
seed = {{seed}}
[data]
name = "arrays"
file = "rows.npz"
normalize = "unit"
{{split}}
public_share = 0.5
[clients]
count = {TASKS}
[rounds]
cohort = 0
[model]
name = "resnet8"
seed_weights = "initial.safetensors"
[evaluation]
every = 1
[strategy]
name = "osi-fl"
images = {MADE}
shown_images = {MADE}
encoder_passes = 4
denoiser_passes = 20
generator_cache = "generator"
{{keys}}
"""
SPLITS = {"osi-fl": f"""[tasks]
count = {TASKS}
[enrolment]
kind = "table"
table = ["AOOOO", "XAOOO", "XXAOO", "XXXAO", "XXXXA"]
[partition]
kind = "iid"
over = "enrolled\"""", "oscar": """[tasks]
kind = "single"
[partition]
kind = "shards"
shards_per_client = 1"""}
KEYS = {"osi-fl": f'preset = "official"\np = {KEPT}', "oscar": f"""preset = "official-oscar"
[training]
learning_rate = {RATE}
batch = 32"""}


# -- Inputs of both sides ---------------------------------------------------------------------------------------------

def small_run(folder, seed, method):
    """Writes digits, the start and mneme's scenario."""
    (x, y), (u, v) = first_of_each(*mnist("train"), PER_CLASS), first_of_each(*mnist("t10k"), TEST_PER_CLASS)
    pixels = [smaller(part) for part in (x, u)]
    numpy.savez(os.path.join(folder, "rows.npz"), train_x=pixels[0], train_y=y, test_x=pixels[1], test_y=v)
    torch.manual_seed(seed)
    net = grey_net()
    if method == "osi-fl":
        learn_digits(net, torch.from_numpy(pixels[0]).unsqueeze(1).float() / 255, torch.from_numpy(y))
    write_tensors(folder, "initial.safetensors", {name: value for name, value in net.state_dict().items()
                                                  if not name.endswith("num_batches_tracked")})
    with open(os.path.join(folder, "scenario.toml"), "w", encoding="utf-8") as file:
        file.write(SCENARIO.format(method=method, seed=seed, split=SPLITS[method], keys=KEYS[method]))


def smaller(digits):
    """Resizes [N, 784] in [0, 1] to [N, SIDE, SIDE] uint8."""
    shown = torch.from_numpy(digits).view(-1, 1, 28, 28)
    return (255 * nn.functional.adaptive_avg_pool2d(shown, SIDE)).round().byte().squeeze(1).numpy()


def grey_net():
    """A ResNet-8 for CIFAR that reads one channel."""
    net = CifarResNet(1, CLASSES)
    net.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
    return net


def learn_digits(net, images, labels):
    """Trains the net on real digits, because OSI-FL's frozen net is pretrained on ImageNet; its head is then
    replaced."""
    optimizer = torch.optim.Adam(net.parameters(), 1e-3)
    for _ in range(2):
        for batch in torch.randperm(len(labels)).split(32):
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(images[batch]), labels[batch]).backward()
            optimizer.step()
    net.fc.reset_parameters()


def made_images(folder):
    """Generated images. @return [class] of [MADE, SIDE, SIDE] uint8"""
    from PIL import Image
    place = os.path.join(folder, "made")
    picture = os.path.join(place, "samples.png")
    if not os.path.exists(picture):
        if "MNEME" not in os.environ:
            raise Refused("MNEME is not set; expected mneme's program, which makes the images (compare.py sets it)")
        shutil.rmtree(place, ignore_errors=True)  # left by an interrupted run
        subprocess.run([os.environ["MNEME"], "run", os.path.join(folder, "scenario.toml"), "--threads", "1", "--quiet",
                        "--set", "training.epochs=1", "--out", place], check=True)
    with open(os.path.join(place, "summary.json"), encoding="utf-8") as file:
        made = json.load(file)["generated_images"]
    if made != CLASSES * MADE:
        raise Refused(f"{place}: {made:.0f} images were made, of which samples.png shows {CLASSES * MADE}; expected "
                      "one client for each class")
    shown = numpy.asarray(Image.open(picture))
    return shown.reshape(CLASSES, SIDE, MADE, SIDE).transpose(0, 2, 1, 3)


class Shown(torch.utils.data.Dataset):
    """Images and labels through the program's transforms, which expect PIL images."""

    def __init__(self, images, labels, view):
        self.images, self.labels, self.view = images, labels, view

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        from PIL import Image
        return self.view(Image.fromarray(self.images[index])), int(self.labels[index])


def rows_of(images, classes, view):
    """Generated rows of some classes."""
    return Shown(numpy.concatenate([images[label] for label in classes]), numpy.repeat(classes, MADE), view)


# -- The official side ------------------------------------------------------------------------------------------------

class Scored(nn.Module):
    """A program's net in the form that Trace expects."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, images):
        return {"logits": self.net(images)}


def note_once(trace, net, seen):
    """Records a task as a round, over the tasks so far, which have equal numbers of test rows."""
    scores = [judged(Scored(net), rows) for rows in trace.tests[:seen]]
    accuracies, losses = zip(*scores)
    trace.kept["rounds"].append({"accuracy": sum(accuracies) / seen, "loss": sum(losses) / seen})
    trace.kept["tasks"].append(accuracies)


def tests_of_tasks(folder, tasks):
    arrays = numpy.load(os.path.join(folder, "rows.npz"))
    images = torch.from_numpy(arrays["test_x"]).unsqueeze(1).float() / 255
    labels = torch.from_numpy(arrays["test_y"])
    return [(images[labels * tasks // CLASSES == task], labels[labels * tasks // CLASSES == task])
            for task in range(tasks)]


def run_osi_fl(checkout, folder, seed):
    """Runs train_incremental_topk on its BackboneModel, with its training transforms."""
    from torchvision import transforms
    adapter = OsiFl()
    adapter.load(checkout)
    view = transforms.Compose([transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(),
                               transforms.ToTensor()])
    images, each = made_images(folder), CLASSES // TASKS
    rows = {task: rows_of(images, range(task * each, (task + 1) * each), view) for task in range(TASKS)}
    with shim.replaced({(adapter.models.models, "resnet18"): lambda pretrained: grey_net()}):
        net = adapter.models.BackboneModel("resnet18", CLASSES)
    given = read_tensors(folder, "initial.safetensors")
    net.encoder.load_state_dict(given, strict=False)
    net.final_proj[0].load_state_dict({"weight": given["fc.weight"], "bias": given["fc.bias"]})
    trace = Trace(tests_of_tasks(folder, TASKS))

    def note(model, seen):
        note_once(trace, model, len(seen))
    adapter.code.update(DataLoader=torch.utils.data.DataLoader, test_model=note)
    shim.seed_all(seed)
    clock = shim.Clock()
    with shim.quiet():
        adapter.code["train_incremental_topk"](net, rows, dict.fromkeys(rows), KEPT, 25, "cpu")
    trace.write(folder, clock.seconds())


def run_oscar(checkout, folder, seed):
    """Runs the main block of train.py on all generated images."""
    from torchvision import transforms
    adapter = Oscar()
    adapter.load(checkout)
    rows, tests = rows_of(made_images(folder), range(CLASSES), transforms.ToTensor()), tests_of_tasks(folder, 1)
    given = read_tensors(folder, "initial.safetensors")

    def started(net):
        net.load_state_dict(given, strict=False)
        return net
    loader = torch.utils.data.DataLoader(rows, batch_size=32, shuffle=True)
    trace = Trace(tests)
    shim.seed_all(seed)
    clock = shim.Clock()
    names = adapter.run_main(grey_net, started, loader, {"all": [tests[0]]},
                             ["--num_classes", str(CLASSES), "--lr", str(RATE), "--iterations", str(EPOCHS)])
    seconds = clock.seconds()
    note_once(trace, names["model"], 1)
    trace.write(folder, seconds)


def main():
    checkout, folder, seed, method = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), int(sys.argv[3]), \
        sys.argv[4]
    torch.set_num_threads(1)
    if not os.path.exists(os.path.join(folder, "scenario.toml")):
        small_run(folder, seed, method)
    {"osi-fl": run_osi_fl, "oscar": run_oscar}[method](checkout, folder, seed)


if __name__ == "__main__":
    try:
        main()
    except Refused as why:
        print(why, file=sys.stderr)
        sys.exit(2)
