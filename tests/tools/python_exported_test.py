"""Nets of torch as exported programs: scores, gradients and ten steps equal PyTorch's, including batch norm; dropout
follows the seed of the run; files can be written from a shell."""
import copy
import os
import subprocess
import sys
import tempfile
import unittest
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
import torch  # noqa: E402
from forked_program import completed  # noqa: E402
from mneme._exported import exported  # noqa: E402
from mneme._nets import layers_of  # noqa: E402
from python_modules_test import (FEATURES, LENGTH, TOKENS, Average, Depthwise, Recurrent, Residual,  # noqa: E402
                                 Stateful, Text, images, scenario, split, table, table_net, tokens)
from python_nets_test import (RATE, STEPS, Calls, Encoder, HandWritten, LeNet, Looks,  # noqa: E402
                              Tutorial, Tutorial16, after_steps, allowed_error, distance, gradients, tied,
                              torchvision_models)
from torch import nn  # noqa: E402

CLASSES, ROWS = 4, 12
SHORT = {"rounds": {"per_task": 2, "cohort": 3}}


def drawn_images(side, channels=3):
    def data():
        rows = torch.randint(0, 256, (ROWS, channels, side, side), dtype=torch.uint8)
        return rows, torch.arange(ROWS) % CLASSES, lambda part: part.float() / 255 * 2 - 1
    return data


def first(data):
    def rows():
        all_rows, labels, normalized = data()
        return all_rows[:ROWS], labels[:ROWS], normalized
    return rows


def norms():
    return nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, groups=2),
                         nn.GroupNorm(2, 8), nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.BatchNorm1d(32), nn.Linear(32, CLASSES))


def numbers():
    labels = torch.arange(ROWS) % CLASSES
    return torch.randn(ROWS, 8), labels, lambda part: part


NETS = {
    "LeNet": (lambda: LeNet(CLASSES), drawn_images(28, 1)), "tutorial": (Tutorial, drawn_images(32)),
    "tutorial of 16": (Tutorial16, drawn_images(16)), "ViT by hand": (lambda: HandWritten(16, 4, 16, CLASSES),
                                                                     drawn_images(16)),
    "encoder, norm first": (lambda: Encoder(True), drawn_images(16)),
    "encoder, norm last": (lambda: Encoder(False), drawn_images(16)), "norms": (norms, drawn_images(12)),
    "average pool": (Average, first(images)), "depthwise": (lambda: Depthwise(norm=False), first(images)),
    "table": (table_net, first(table)), "GRU": (lambda: Recurrent(nn.GRU), first(tokens)),
    "LSTM": (lambda: Recurrent(nn.LSTM), first(tokens)),
    "LSTM with states": (lambda: Recurrent(Stateful), first(tokens)),
    "text, norm first": (lambda: Text(True), first(tokens)), "text, norm last": (lambda: Text(False), first(tokens)),
    "residual of tokens": (Residual, first(tokens)), "tied": (tied, numbers),
    "one layer twice": (lambda: Calls(lambda self, x: self.a(x)), numbers),
    "softmax": (lambda: Calls(lambda self, x: torch.softmax(x, 1)), numbers),
    "tanh GELU": (lambda: Calls(lambda self, x: nn.functional.gelu(x, approximate="tanh")), numbers)}


class Exported(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(scratch.name)
        torch.manual_seed(0)

    def model(self, module, example):
        """Returns the keys of [model] for the module as an exported program."""
        path = os.path.abspath(f"{len(os.listdir('.'))}.pt2")
        self.content = exported(module, example)
        with open(path, "wb") as file:
            file.write(self.content)
        return {"module": path, "module_output": "scores"}

    def near(self, ours, exact, theirs, name):
        """Checks that mneme's result is as close to PyTorch in float64 as PyTorch's float32 result is."""
        self.assertLess(distance(ours, exact), allowed_error(exact, theirs), name)

    def agree(self, module, data):
        """Compares scores, the gradient in training mode, and the state after ten steps."""
        rows, labels, normalized = data()
        x = normalized(rows)
        before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        settings = scenario(self.model(module.train(), x[:2]), clients={"count": 1}, rounds={"per_task": 1},
                            training={"learning_rate": RATE, "momentum": 0.0}, strategy={"name": "py-looks"})
        mneme.run(settings, methods=[Looks], data=mneme.Data(rows, labels, rows, labels))
        seen = Looks.seen
        module64, x64 = copy.deepcopy(module).double(), x.double() if x.is_floating_point() else x
        with torch.no_grad():
            self.near(seen["logits"], module64.eval()(x64), module.eval()(x), "scores")
        gradients64, gradients32 = gradients(module64, x64, labels), gradients(module, x, labels)
        for name, gradient in seen["gradient"].items():
            if name not in seen["buffers"]:
                self.near(gradient, gradients64[name], gradients32[name], f"gradient of {name}")
        state64, state32 = (after_steps(net, before, rows_of_net, labels) for net, rows_of_net in
                            ((module64, x64), (module, x)))
        for name, value in seen["weights"].items():
            self.near(value, state64[name], state32[name], f"{name} after {STEPS} steps")
        return seen

    def test_exported_nets_train_like_torch_and_all_but_five_become_layers(self):
        unfused = set()
        for name, (make, data) in NETS.items():
            with self.subTest(name):
                torch.manual_seed(1)
                seen = self.agree(make(), data)
                self.assertEqual(any("running" in buffer for buffer in seen["buffers"]), name == "norms")
                if not layers_of(self.content)[0]:
                    unfused.add(name)
        self.assertEqual(unfused, {"GRU", "LSTM with states", "tied", "one layer twice", "softmax"})

    def test_operators_without_a_layer_are_named_when_a_run_starts(self):
        rows, labels, _ = numbers()
        model = self.model(Calls(lambda self, x: torch.softmax(x, 1)), rows[:2])
        with self.assertWarnsRegex(mneme.MnemeWarning, r"2 of 3 operators of the module run as layers.*"
                                                     r"unfused: .*softmax.int \(softmax\): none of"):
            mneme.run(scenario(model), data=mneme.Data(rows, labels, rows, labels))

    def test_fused_nets_have_one_digest_for_all_threads_and_widths(self):
        for name in ("encoder, norm first", "depthwise", "LSTM", "residual of tokens", "GRU", "LSTM with states"):
            make, data = NETS[name]
            rows, labels, normalized = data()
            model = self.model(make(), normalized(rows[:2]))
            digests = {mneme.run(scenario(model, **SHORT, worker={"fused_clients_max": width}), threads=threads,
                                 data=mneme.Data(rows, labels, rows, labels), out=f"{name}{threads}").digest
                       for threads, width in ((1, 1), (3, 2))}
            self.assertEqual(len(digests), 1, name)

    def test_torchvision_nets_are_exported(self):
        models = torchvision_models(self)
        nets = [(models.VisionTransformer(image_size=16, patch_size=4, num_layers=2, num_heads=2, hidden_dim=16,
                                          mlp_dim=32, num_classes=CLASSES), 16),
                (models.shufflenet_v2_x0_5(num_classes=CLASSES), 32)]
        nn.init.normal_(nets[0][0].heads.head.weight, std=0.1)  # zeros otherwise
        for module, side in nets:
            with self.subTest(type(module).__name__):
                rows, labels, normalized = drawn_images(side)()
                with torch.no_grad():
                    scores = module.eval()(normalized(rows))
                settings = scenario(self.model(module.train(), normalized(rows[:2])), training={"epochs": 0})
                run = mneme.run(settings, data=mneme.Data(rows, labels, rows, labels))
                self.assertAlmostEqual(run.records[-1]["loss"],
                                       float(nn.functional.cross_entropy(scores, labels)), places=5)

    def trained(self, model, data, out, threads=1, **sections):
        return mneme.run(scenario(model, **sections), data=split(*data[:2]), out=out, threads=threads)

    def test_batch_norm_and_dropout_train_and_one_digest_holds(self):
        data = images()
        module = Depthwise(norm=True)
        model = self.model(module, data[2](data[0][:2]))
        runs = [self.trained(model, data, f"run{threads}", threads, worker={"fused_clients_max": width})
                for threads, width in ((1, 1), (2, 3), (3, 8))]
        self.assertEqual(len({run.digest for run in runs}), 1)
        after = runs[0].model()
        self.assertFalse(torch.equal(after["block.1.running_mean"], module.block[1].running_mean))
        module.load_state_dict(after, strict=False)
        with torch.no_grad():
            scores = module.eval()(data[2](data[0][180:]))
        right = (scores.argmax(1) == data[1][180:]).float().mean() * 100
        self.assertAlmostEqual(runs[0].summary["final_accuracy"], float(right), places=4)
        still = self.trained({**model, "module_training": False}, data, "still")
        self.assertTrue(torch.equal(still.model()["block.1.running_mean"], torch.zeros(24)))
        self.assertNotEqual(still.digest, runs[0].digest)
        again = self.trained(model, data, "seed", seed=2)
        self.assertNotEqual(again.digest, runs[0].digest)

    def test_dropout_of_attention_and_recurrent_nets_follows_the_seed(self):
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.2, batch_first=True)
        encoder = nn.Sequential(nn.Embedding(TOKENS, 16), nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
                                nn.Flatten(), nn.Linear(16 * LENGTH, CLASSES))
        lstm = Recurrent(lambda inputs, width, batch_first: nn.LSTM(inputs, width, 3, dropout=0.3, batch_first=True))
        data = tokens()
        for number, module in enumerate((encoder, lstm)):
            model = self.model(module.train(), data[0][:2])
            digests = [self.trained(model, data, f"{number}-{threads}", threads, **SHORT).digest
                       for threads in (1, 2)]
            self.assertEqual(*digests)
            still = self.trained({**model, "module_training": False}, data, f"{number}-still", **SHORT)
            self.assertNotEqual(still.digest, digests[0])

    def test_modules_that_cannot_be_exported_are_refused_with_the_usual_fix(self):
        example = torch.zeros(2, FEATURES)

        class Branches(nn.Linear):
            def forward(self, x):
                return super().forward(x) if x.sum() > 0 else -super().forward(x)

        class Fixed(nn.Linear):
            def forward(self, x):
                return super().forward(x.view(2, -1))
        for module, text in ((Branches(FEATURES, CLASSES), r"torch.where\(\)"),
                             (Fixed(FEATURES, CLASSES), r"x.flatten\(1\)")):
            with self.subTest(text), self.assertRaisesRegex(mneme.ScenarioError, text):
                exported(module, example)

    def test_modules_with_several_results_are_refused(self):
        class Two(nn.Linear):
            def forward(self, x):
                y = super().forward(x)
                return y, y.relu()
        rows, labels, _ = table()
        with self.assertRaisesRegex(mneme.ScenarioError, r"forward returns 2 tensors .*expected one"):
            mneme.run(scenario(self.model(Two(FEATURES, CLASSES), rows[:2])), data=split(rows, labels), out="never")

    def test_exported_files_contain_no_local_paths(self):
        content = exported(table_net(), torch.zeros(2, FEATURES))
        with open("net.pt2", "wb") as file:
            file.write(content)
        with zipfile.ZipFile("net.pt2") as archive:
            for name in archive.namelist():
                self.assertNotIn(b".py", archive.read(name), name)
                self.assertNotIn("sample_inputs", name)

    def test_export_net_exports_from_the_command_line(self):
        with open("nets.py", "w", encoding="utf-8") as file:
            file.write("from torch import nn\ndef make():\n"
                       f"    return nn.Sequential(nn.Linear({FEATURES}, 8), nn.Mish(), nn.Linear(8, {CLASSES}))\n")
        done = subprocess.run([sys.executable, "-m", "mneme", "export-net", "nets.py:make", "--rows", str(FEATURES),
                               "--out", "net.pt2"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows, labels, _ = table()
        run = mneme.run(scenario({"module": os.path.abspath("net.pt2"), "module_output": "scores"}),
                        data=split(rows, labels))
        self.assertGreater(run.summary["final_accuracy"], 50.0)
        for words, text in ((["nothing.py:make", "--rows", "3"], "expected FILE.py:FUNCTION"),
                            (["nets.py:other", "--rows", "3"], "gives NoneType; expected a torch.nn.Module")):
            done = completed("export-net", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(text, done.stderr)


if __name__ == "__main__":
    python_package.run_tests()
