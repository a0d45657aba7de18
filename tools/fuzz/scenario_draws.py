"""Random scenarios over the whole key table, small enough to run in a second.

A scenario is a list of settings, (section, key, value as TOML), written one per line. Lines that the program rejects
are dropped, so that most scenarios run. The files that it names are in the folder of the scenario.
"""
import os
import random
import re

from drawn_files import (array_files, availability_file, capacity_file, csv_files, drawn_profiles, link_file,
                         partition_file, picture_files)
from drawn_nets import IMAGES, SIDES, TEXTS, drawn_layers, drawn_net, settings_of_net

SMOKE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "scenarios", "smoke")

# Ranges of keys that determine how long a run takes. All other keys are drawn by their kind.
SMALL = {
    "seed": [1, 2, 3, 12345],
    "tasks.count": [1, 2, 2, 3], "tasks.classes": [0, 0, 2, 6], "tasks.first_classes": [0, 0, 1, 2],
    "tasks.sizes": ["[]", "[]", "[1, 3]", "[2, 1, 3]"], "tasks.domain_order": ['"natural"', '"seeded"'],
    "tasks.classes_per_task": [0, 2, 3], "tasks.class_order": ['"natural"', '"seeded"'],
    "data.rows": [24, 60, 200], "data.train_rows": [0, 30, 100], "data.test_rows": [0, 30],
    "data.train_per_class": [0, 3], "data.test_per_class": [0, 2], "data.classes": [2, 6, 12],
    "data.resize": [0, 9, 17], "data.crop": [0, 8],
    "clients.count": [1, 2, 5, 9, 16], "partition.rows_per_client": [1, 7, 30],
    "enrolment.table": ['["AX", "XA"]', '["AA"]', '["AO"]', '["AO", "AA"]', '["AXA", "XAO", "AAA"]'],
    "rounds.per_task": [1, 2, 3], "rounds.cohort": [0, 1, 3, 5], "rounds.concurrency": [1, 2, 4],
    "rounds.buffer": [1, 2, 3], "training.epochs": [0, 1, 2],
    "strategy.adaptation_rounds": [1, 2], "strategy.projection_width": [0, 1, 20], "strategy.dummies": [1, 3],
    "strategy.reconstruction_steps": [2, 3], "strategy.images_per_gradient": [1, 2], "strategy.memory": [0, 5, 40],
    "strategy.server_steps": [1, 3], "strategy.vee_epochs": [1], "strategy.pool_size": [5, 50],
    "strategy.local_steps": [1, 3], "strategy.consolidation_steps": [0, 2], "strategy.gan_batch": [1, 8],
    "strategy.generator_rounds": [2, 3], "strategy.warm_up": [1, 2], "strategy.generator_steps": [1, 2],
    "strategy.generator_batch": [4, 12], "strategy.generator_width": [2, 4], "strategy.noise_width": [3, 8],
    "strategy.student_steps": [0, 2], "strategy.embedding_width": [0, 5], "strategy.critic_width": [3],
    "strategy.latent": [3], "strategy.images": [1, 4], "strategy.sampling_steps": [1, 2],
    "strategy.doublings": [1, 2], "strategy.candidates": [1, 2], "strategy.beams": [1, 2],
    "strategy.encoder_passes": [1], "strategy.component_passes": [1], "strategy.denoiser_passes": [1],
    "model.filters": ["[3, 4]"], "model.embedding": [5], "model.classifier": ["[]", "[6]"],
    "model.hidden": ["[]", "[3]", "[17, 5]"], "model.width": [4, 8, 12], "model.depth": [1, 2],
    "model.heads": [1, 2, 4], "model.patch": [2, 4],
    "model.low_rank_targets": ['["query", "value"]', '["key", "projection", "mlp"]', '["qkv"]', "[]"],
    "strategy.length": [2, 4], "strategy.general_length": [2, 4], "strategy.blocks": ["[0]", "[1]", "[0, 1]", "[]"],
    "strategy.general_blocks": ["[0]", "[1]", "[]"], "strategy.components": [1, 1, 2, 3], "strategy.rank": [1, 2],
    "strategy.tuning_epochs": [0, 1, 2], "strategy.student_batch": [1, 6], "strategy.code_width": [3, 8],
    "strategy.replay_rows": [1, 5], "strategy.pool_max": [0, 6], "strategy.adjustment_width": [1, 5],
    "strategy.head_width": [1, 4], "strategy.adjustment_hidden": ["[]", "[6]", "[4, 5]"],
    "strategy.buffer": [1, 6, 40], "strategy.stage2_epochs": [0, 1], "strategy.warmup_epochs": [0, 1],
    "strategy.feature_layer": ['""'], "model.image": [0, 8, 16], "model.groups": [1, 2, 8], "model.adapter": [0, 0, 3],
    "model.vocabulary": [0, 20, 25], "model.positions": [0, 40], "model.mlp": [0, 5],
    "model.head_hidden": ["[]", "[4]"], "training.batch": [0, 1, 4, 10], "data.side": [0, 8, 9],
    "data.channels": [0, 1, 3], "training.milestones": ["[1]", "[1, 2]"], "evaluation.targets": ["[1.0, 50]"],
    "worker.verify_share": [0], "worker.arithmetic": ['"machine"', '"portable"'],
    "devices.trace_period": ['"0 s"', '"2 h"', '"1 s"'],
    "worker.count": [0], "worker.shards": [0], "worker.fused_clients_max": [0], "worker.lookahead_memory": ['"1 GiB"'],
    "worker.device": ['"cpu"'],
}
FIXED = {"data": {"name", "root", "shape", "vocabulary_size", "label_column", "split_column", "domain_column",
                  "ignore_columns", "folder"},
         "strategy": {"name", "preset"},
         "model": {"name", "weights", "seed_weights", "frozen"}, "checkpoint": {"every", "force", "keep"}}
# Keys that a scenario must set, because their defaults make runs too long.
GIVEN = {"seed", "tasks.count", "clients.count", "rounds.per_task", "data.rows", "data.classes",
         "strategy.reconstruction_steps", "strategy.images_per_gradient", "strategy.memory",
         "strategy.adaptation_rounds", "strategy.projection_width", "strategy.dummies", "strategy.server_steps",
         "strategy.vee_epochs", "strategy.local_steps", "strategy.consolidation_steps", "strategy.gan_batch",
         "strategy.generator_rounds", "strategy.warm_up", "strategy.generator_steps", "strategy.generator_batch",
         "strategy.generator_width", "strategy.noise_width", "strategy.student_steps", "strategy.embedding_width",
         "strategy.critic_width", "strategy.latent", "strategy.images", "strategy.sampling_steps",
         "strategy.encoder_passes", "strategy.component_passes", "strategy.denoiser_passes", "model.filters",
         "model.embedding", "model.classifier", "model.hidden", "model.width",
         "model.depth", "model.heads", "training.batch", "strategy.adjustment_hidden",
         "strategy.blocks", "strategy.general_blocks", "strategy.components", "model.patch",
         "partition.rows_per_client"}
NEVER_DROPPED = {"strategy.name", "data.name", "data.file", "data.root", "data.label_column", "model.width",
                 "model.depth", "strategy.components"}
DURATIONS = ["0 s", "1 ns", "1 ms", "20 ms", "1 s", "5 s", "2 min", "1 h"]
MADE_UP = {"data.rows", "data.classes", "data.shape", "data.vocabulary_size"}  # keys of data.name = "synthetic"
LARGE = 20
# Keys that presets set to large values, with the values used instead.
PRESET_LIMITS = {"training.epochs": "1", "training.batch": "8", "rounds.per_task": "2", "rounds.cohort": "2"}
PARTS = {"strategy.condition": '"sd77x768"', "strategy.condition_shape": "[12, 16]",
         **{f"strategy.{key}": f'"{os.path.join(SMOKE, "parts", name)}"' for key, name in
            {"caption_encoder": "caption_encoder.pt2", "caption_decoder": "caption_decoder.pt2",
             "caption_words": "caption_words.json", "text_encoder": "text_states.pt2",
             "text_tokens": "text_tokens.json", "text_merges": "text_merges.txt", "denoiser": "denoiser.pt2",
             "picture_decoder": "decoder.pt2"}.items()}}


# Keys that are drawn together with the files that they name, and keys that are never drawn.
WITH_FILES = {"data.name", "data.root", "data.shape", "data.vocabulary_size", "data.file", "data.label_column",
              "data.split_column", "data.domain_column", "partition.file", "devices.availability_file",
              "devices.profiles", "devices.capacity_file", "devices.link_file", "model.name", "model.module",
              "model.weights", "model.layers", "strategy.name", "strategy.preset", "strategy.feature_cache",
              "strategy.generator_cache", *PARTS}
NEVER_DRAWN = {"title", "data.folder", "data.ignore_columns", "model.frozen", "model.seed_weights",
               "model.backbone", "strategy.label_embeddings", "strategy.projection_file",
               "checkpoint.every", "checkpoint.force", "checkpoint.keep"}


def drawn_value(key, draw):
    """Returns a random value of a key as TOML; None leaves the key out."""
    if key.full_name in SMALL:
        return str(draw.choice(SMALL[key.full_name]))
    if key.kind == "boolean":
        return draw.choice(["true", "false"])
    if key.kind == "word":
        return f'"{draw.choice(key.words)}"' if key.words else None
    if key.kind == "duration":
        return f'"{draw.choice(DURATIONS)}"'
    if key.kind == "size":
        return draw.choice(['"0 B"', '"1 B"', '"1 kB"', '"1 MiB"'])
    if key.kind == "integer":
        low = int(max(key.low, 0))
        return str(min(draw.choice([low, low + 1, low + draw.randrange(8)]), int(key.high)))
    if key.kind in ("number", "device"):
        return _drawn_number(key, draw)
    if key.kind == "list" and key.words[:1] in (["integers"], ["numbers"]):
        low = int(max(key.low, 0)) or 1
        return "[" + ", ".join(str(low + draw.randrange(3)) for _ in range(draw.randrange(3))) + "]"
    return None


def _drawn_number(key, draw):
    low, high = max(key.low, 0.0), min(key.high, 1e4)
    number = draw.choice([low, high if key.high <= 1.0 else 1.0, 0.01, 0.3, draw.random(), draw.random() * 10])
    number = min(max(number, low), high)
    if number == low and key.open_low:
        number = 0.05
    if key.kind == "device" and draw.random() < 0.4:
        return f"{{ median = {max(number, 0.5):.6g}, sigma = {draw.choice([0.0, 0.5, 2.0])} }}"
    return f"{number:.6g}"


class DrawnScenario:
    """@param files contents of the files that it names, by path relative to the scenario"""

    def __init__(self, settings, files=None):
        self.settings = settings  # [(section, key, value)]
        self.files = files or {}

    def text(self):
        return "\n".join(self._lines()) + "\n"

    def _lines(self):
        lines, section = [], ""
        for name, key, value in sorted(self.settings, key=lambda setting: setting[0]):
            if name != section:
                lines.append(f"[{name}]")
                section = name
            lines.append(f"{key} = {value}")
        return lines

    def without(self, dropped):
        return DrawnScenario([setting for setting in self.settings if setting not in dropped], self.files)

    def without_refused(self, errors):
        """Returns the scenario without the lines that errors of the program name; None if they name no line that may be
        dropped."""
        lines = self._lines()
        refused = set()
        for number in re.findall(r"\.toml:(\d+):\d+: error", errors):
            line = lines[int(number) - 1]
            refused |= self._those(lambda section, key, value, line=line: line == f"{key} = {value}")
        if not refused:  # no location, so search for the names of keys in the text
            refused = self._those(lambda section, key, value: f"{section}.{key}" in errors)
        if not refused:  # then the key or its section alone, except keys that keep a run short
            refused = (self._those(lambda section, key, value: f"{section}.{key}" not in GIVEN
                                   and re.search(rf"\b{key}\b", errors))
                       or self._those(lambda section, key, value: section and f"{section}.{key}" not in GIVEN
                                      and re.search(rf"\b{section}\.", errors)))
        return self.without(refused) if refused else None

    def _those(self, are_chosen):
        """Settings for which `are_chosen(section, key, value)` is true, except those that must not be dropped."""
        return {setting for setting in self.settings
                if ".".join(setting[:2]) not in NEVER_DROPPED and are_chosen(*setting)}


class _Draws:
    """Random choices of one seed: settings by full name, the kind of rows, and files."""

    def __init__(self, tables, seed):
        self.tables, self.draw, self.folder = tables, random.Random(seed), f"beside-{seed}"
        self.settings, self.files = {}, {}

    def made(self):
        draw = self.draw
        self.method = draw.choice(sorted(self.tables.methods))
        self.model = drawn_net(self.method, self.tables.models, draw)
        self.settings |= {"strategy.name": f'"{self.method}"', "model.name": f'"{self.model}"'}
        self._draw_rows()
        self.settings |= settings_of_net(self.method, self.model, draw)
        self._draw_keys(draw.choice([0.05, 0.2, 0.5]))
        self._draw_preset()
        if self.model == "layers":
            self.settings["model.layers"] = drawn_layers(self.kind, draw)
        self._draw_tables()
        self._draw_paths()
        settings = [(*(name.split(".", 1) if "." in name else ("", name)), value)
                    for name, value in self.settings.items()]
        return DrawnScenario(settings, self.files)

    def _draw_rows(self):
        draw = self.draw
        image = self.model in IMAGES or self.method == "osi-fl" or (self.model not in TEXTS and draw.random() < 0.3)
        self.kind = "images" if image else "tokens" if self.model in TEXTS else "numbers"
        side, channels = SIDES.get(self.model) or draw.choice([8, 12]), draw.choice([1, 3])
        shape = [channels, side, side] if image else [draw.choice([1, 4, 33])]
        with_domains = draw.random() < 0.4
        source = draw.choice(["synthetic"] * 5 + ["arrays", "own", "real"])
        if source == "real" and not (image and channels == 1 and side == 28 and os.environ.get("MNEME_DATA")):
            source = "synthetic"
        if source == "own":
            source = {"images": "folder", "numbers": "csv", "tokens": "arrays"}[self.kind]
        self.settings["data.name"] = f'"{source}"'
        if source == "synthetic":
            self.settings["data.shape"] = str(shape)
            if self.kind == "tokens":
                self.settings["data.vocabulary_size"] = "20"
        elif source == "arrays":
            file, self.files = array_files(draw, self.folder, self.kind, shape, 20, with_domains)
            self.settings["data.file"] = f'"{file}"'
        elif source in ("csv", "folder"):
            given, self.files = (csv_files(draw, self.folder, shape[0], with_domains) if source == "csv" else
                                 picture_files(draw, self.folder, channels, side, with_domains))
            self.settings |= {f"data.{name}": value for name, value in given.items()}
        else:
            self.settings["data.name"] = draw.choice(['"mnist"', '"fashion-mnist"', '"digits"'])
            self.settings |= {"data.train_rows": "200", "data.test_rows": "60"}
        self.with_domains = with_domains or self.settings["data.name"] == '"digits"'
        if self.with_domains and draw.random() < 0.7:
            self.settings |= {"tasks.kind": '"domain-incremental"', "tasks.transform": '"domains"', "tasks.count": "2"}

    def _draw_keys(self, share):
        """Draws keys. share: fraction of the keys that are set"""
        made_up = self.settings["data.name"] == '"synthetic"'
        tried = [key for section in self.tables.sections.values() for key in section]
        own = self.tables.methods[self.method] + self.tables.models[self.model]
        for key in tried + own:
            if key.name in FIXED.get(key.section, set()) or key.full_name in self.settings:
                continue
            given = key.full_name in GIVEN or (key in own and takes_long(key))
            if key.full_name in MADE_UP and not made_up:
                given = False
                if self.draw.random() < 0.95:
                    continue
            if given or self.draw.random() < share:
                value = drawn_value(key, self.draw)
                if value is not None:
                    self.settings[key.full_name] = value

    def _draw_preset(self):
        presets = self.tables.presets.get(self.method)
        if presets and self.draw.random() < 0.15:
            self.settings["strategy.preset"] = f'"{self.draw.choice(presets)}"'
            for name, value in PRESET_LIMITS.items():
                self.settings.setdefault(name, value)

    def _draw_tables(self):
        draw, clients = self.draw, int(self.settings.get("clients.count", 20))
        if draw.random() < 0.1:
            rows = int(self.settings.get("data.rows", 24))
            self._file("partition.file", "partition.csv",
                       partition_file(draw, clients, rows, int(self.settings.get("tasks.count", 1))))
            self.settings["partition.kind"] = '"file"'
        if draw.random() < 0.1:
            self._file("devices.availability_file", "availability.csv", availability_file(draw, clients))
            self.settings["devices.availability"] = '"file"'
        if draw.random() < 0.07:
            self._file("devices.link_file", "links.csv", link_file(draw, clients))
        profiles = 0
        if draw.random() < 0.1:
            self.settings["devices.profiles"], profiles = drawn_profiles(draw)
        if draw.random() < 0.07:
            self._file("devices.capacity_file", "capacity.csv", capacity_file(draw, clients, profiles))
        if draw.random() < 0.07:
            values = [draw.choice(["5", "0.5", "900"]) for _ in range(clients + draw.choice([0, 0, 0, 1]))]
            self.settings["devices.rows_per_second"] = "[" + ", ".join(values) + "]"

    def _draw_paths(self):
        own = {key.full_name for key in self.tables.methods[self.method]}
        for name in ("strategy.feature_cache", "strategy.generator_cache"):
            if name in own and self.draw.random() < 0.5:
                self.settings[name] = f'"{self.folder}/cache"'
        if self.kind == "images" and self.draw.random() < 0.02:
            self.settings["model.module"] = f'"{os.path.join(SMOKE, "tiny.pt2")}"'
        if self.method == "osi-fl" and self.draw.random() < 0.2:
            self.settings |= PARTS

    def _file(self, key, name, text):
        self.files[f"{self.folder}/{name}"] = text.encode()
        self.settings[key] = f'"{self.folder}/{name}"'


def takes_long(key):
    """True if the key's default is so large that a run would take long."""
    return key.kind == "integer" and float(key.default) >= LARGE


def drawn_scenario(tables, seed):
    """Returns the scenario of a seed, with keys of its method and model."""
    return _Draws(tables, seed).made()
