#!/usr/bin/env python3
"""What a net learns that sees nothing but LANDER's images: a fresh student, tested on real rows.

    tools/research/studies/lander_fresh_student.py --program build/release/mneme --out runs/lander_fresh [--seeds 1,2,3]

For each seed it runs scenarios/small/lander_emnist.toml, takes the pool that the server made before the last task out
of the run's checkpoint, and trains a net of the same kind, drawn anew, on these images under the labels that they were
made for. Needs Pillow, as test rows are brought to the pool's size as the run's are.
"""
import argparse
import gzip
import os
import pathlib
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.dont_write_bytecode = True
from study_runs import labels_array, run_once  # noqa: E402
from array_bytes import Packed, write_safetensors  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCENARIO = ROOT / "scenarios/small/lander_emnist.toml"
BYTE, INT64 = 0, 4  # types of tensors in a checkpoint
STUDENT_STEPS = 1640  # of 32 images: five passes over the pool that full steps make
FEW_STEPS = {"generator_rounds": 6, "warm_up": 2, "generator_steps": 10, "generator_batch": 40, "student_steps": 5}


def tensor_of(content, name, kind):
    """(sizes, bytes) of the first tensor of this name and type in a checkpoint (runtime/base/archive.cpp)."""
    label = struct.pack("<Q", len(name)) + name.encode()
    at = content.find(label)
    while at >= 0:
        start = at + len(label)
        stored, axes = struct.unpack_from("<bQ", content, start + 8)
        if stored == kind and 0 < axes <= 4:
            sizes = struct.unpack_from(f"<{axes}q", content, start + 17)
            count = (8 if kind == INT64 else 1)
            for size in sizes:
                count *= size
            first = start + 17 + 8 * axes
            return list(sizes), content[first:first + count]
        at = content.find(label, start)
    raise SystemExit(f"no tensor '{name}' in the checkpoint: was it written in a later task?")


def pool_of(run):
    """Images and labels that the server of a finished run has made: {"images": (sizes, bytes), "labels": the same}."""
    newest = max((run / "checkpoint").glob("*.checkpoint"))
    content = newest.read_bytes()
    return {"images": tensor_of(content, "images", BYTE), "labels": tensor_of(content, "labels", INT64)}


def idx_rows(path):
    """Items of an idx file of bytes, one bytes object each, and their sizes."""
    content = gzip.open(path).read()
    axes = content[3]
    sizes = struct.unpack_from(f">{axes}I", content, 4)
    width = len(content[4 + 4 * axes:]) // sizes[0]
    first = 4 + 4 * axes
    return [content[first + i * width:first + (i + 1) * width] for i in range(sizes[0])], sizes[1:]


def test_rows(folder, classes, side):
    """Test images of the first classes of EMNIST, brought to this many pixels of a side, and their labels."""
    from PIL import Image
    images, sizes = idx_rows(folder / "emnist47-test-images-idx3-ubyte.gz")
    labels = [row[0] for row in idx_rows(folder / "emnist47-test-labels-idx1-ubyte.gz")[0]]
    kept = [i for i, label in enumerate(labels) if label < classes]
    whole = [Image.frombytes("L", (sizes[1], sizes[0]), images[i]) for i in kept]
    pixels = [image.resize((side, side), Image.Resampling.BICUBIC).tobytes() for image in whole]
    return b"".join(pixels), [labels[i] for i in kept]


def write_pool(path, pool, test):
    """A file of the pool as training rows and of real test rows."""
    sizes, pixels = pool["images"]
    write_safetensors(path, {"train_x": Packed("uint8", sizes, pixels), "train_y": Packed("int64", *pool["labels"]),
                             "test_x": Packed("uint8", [len(test[1])] + sizes[1:], test[0]),
                             "test_y": labels_array(test[1])})


def student_of(program, seed, out, settings):
    """LANDER's summary, the accuracy of its model before the last task on the classes that it knew, the number of
    images that were made of it, and the summary of the student of these, all on the same test rows."""
    made = run_once(program, SCENARIO, out / "lander", settings | {"seed": seed, "checkpoint.force": "true"})
    pool = pool_of(out / "lander")
    classes = 1 + max(struct.unpack(f"<{pool['labels'][0][0]}q", pool["labels"][1]))
    data = pathlib.Path(os.environ["MNEME_DATA"]) / "emnist47"
    write_pool(out / "pool.safetensors", pool, test_rows(data, classes, pool["images"][0][-1]))
    images = pool["images"][0][0]
    taught = run_once(program, ROOT / "scenarios/small/lander_emnist_joint.toml", out / "student", {
        "seed": seed, "data.name": "arrays", "data.file": str((out / "pool.safetensors").resolve()), "data.resize": 0,
        "data.train_per_class": 0, "tasks.count": 1, "tasks.classes": classes, "training.epochs": 1,
        "rounds.per_task": round(32 * STUDENT_STEPS / images)})
    before = (out / "lander/accuracy_matrix.csv").read_text().splitlines()[-2].split(",")[1:]
    known = [float(value) for value in before if value]
    return made, sum(known) / len(known), images, taught


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--program", default=str(ROOT / "build/release/mneme"))
    arguments.add_argument("--out", type=pathlib.Path, required=True)
    arguments.add_argument("--seeds", default="1,2,3")
    arguments.add_argument("--steps", default="few,full", help="few: 60 steps of 40 images; full: 2,000 of 256")
    told = arguments.parse_args()
    few = {f"strategy.{key}": value for key, value in FEW_STEPS.items()}
    for seed in told.seeds.split(","):
        for steps in told.steps.split(","):
            out = told.out / f"{steps}_seed{seed}"
            out.mkdir(parents=True, exist_ok=True)
            made, teacher, images, taught = student_of(told.program, seed, out, few if steps == "few" else {})
            print(f"seed {seed}, {steps} steps: teacher {teacher:.1f}, student {taught['final_accuracy']:.1f} from "
                  f"{images} images, LANDER {made['final_accuracy']:.1f} at the end, {made['cpu_seconds']:.0f} CPU s",
                  flush=True)


if __name__ == "__main__":
    main()
