"""Random scenarios over the whole key table, small enough to run in a second.

A scenario is a list of settings, (section, key, value as TOML), written one to a line; what the program refuses by its
line is dropped by line, so that most of what is drawn runs."""
import random
import re

# What decides how long a run takes is drawn here; all other keys by their kind.
SMALL = {
    "seed": [1, 2, 3, 12345],
    "tasks.count": [1, 2, 2, 3], "tasks.classes": [0, 0, 2, 6], "tasks.first_classes": [0, 0, 1, 2],
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
    "strategy.encoder_passes": [1], "strategy.component_passes": [1], "strategy.denoiser_passes": [1],
    "model.filters": ["[3, 4]"], "model.embedding": [5], "model.classifier": ["[]", "[6]"],
    "model.hidden": ["[]", "[3]", "[17, 5]"], "model.width": [4, 8, 12], "model.depth": [1, 2],
    "model.heads": [1, 2, 4], "model.patch": [2, 4], "model.image": [0, 8],
    "worker.count": [0], "worker.shards": [0], "worker.models_max": [0], "worker.ahead_max": ['"1 GiB"'],
    "worker.device": ['"cpu"'],
}
FIXED = {"data": {"name", "root", "shape", "tokens"}, "strategy": {"name", "preset"},
         "model": {"name", "weights", "seed_weights"}, "checkpoint": {"every", "force", "keep"}}
# What a scenario must give lest its defaults take long.
GIVEN = {"seed", "tasks.count", "clients.count", "rounds.per_task", "data.rows", "data.classes",
         "strategy.reconstruction_steps", "strategy.images_per_gradient", "strategy.memory",
         "strategy.adaptation_rounds", "strategy.projection_width", "strategy.dummies", "strategy.server_steps",
         "strategy.vee_epochs", "strategy.local_steps", "strategy.consolidation_steps", "strategy.gan_batch",
         "strategy.generator_rounds", "strategy.warm_up", "strategy.generator_steps", "strategy.generator_batch",
         "strategy.generator_width", "strategy.noise_width", "strategy.student_steps", "strategy.embedding_width",
         "strategy.critic_width", "strategy.latent", "strategy.images", "strategy.sampling_steps",
         "strategy.encoder_passes", "strategy.component_passes", "strategy.denoiser_passes", "model.filters",
         "model.embedding", "model.classifier", "model.hidden", "model.width",
         "model.depth", "model.heads", "model.patch", "partition.rows_per_client"}
NEVER_DROPPED = {"strategy.name", "data.name"}
DURATIONS = ["0 s", "1 ns", "1 ms", "20 ms", "1 s", "5 s", "2 min", "1 h"]
IMAGES = {"cnn", "lenet", "resnet18", "resnet32", "resnet50", "resnet152", "resnet8", "vee", "ebr", "vit"}
TEXTS = {"bert", "lstm"}
# Nets that would take a whole test's time.
TOO_SLOW = {"resnet18", "resnet32", "resnet50", "resnet152"}


def drawn_value(key, draw):
    """A value for the key as TOML; None: leave it out."""
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
    def __init__(self, settings):
        self.settings = settings  # [(section, key, value)]

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
        return DrawnScenario([setting for setting in self.settings if setting not in dropped])

    def without_refused(self, errors):
        """Without the lines that the program's errors name; None where they name none that may be dropped."""
        lines = self._lines()
        refused = set()
        for number in re.findall(r"\.toml:(\d+):\d+: error", errors):
            line = lines[int(number) - 1]
            refused |= self._those(lambda section, key, value: line == f"{key} = {value}")
        if not refused:  # without a place: what the text names
            refused = self._those(lambda section, key, value: f"{section}.{key}" in errors)
        if not refused:  # or its key alone, or its section; what keeps a run short stays
            refused = (self._those(lambda section, key, value: f"{section}.{key}" not in GIVEN
                                   and re.search(rf"\b{key}\b", errors))
                       or self._those(lambda section, key, value: section and f"{section}.{key}" not in GIVEN
                                      and re.search(rf"\b{section}\.", errors)))
        return self.without(refused) if refused else None

    def _those(self, are_chosen):
        """The settings that it chooses by section, key and value, without those that are never dropped."""
        return {setting for setting in self.settings
                if ".".join(setting[:2]) not in NEVER_DROPPED and are_chosen(*setting)}


def drawn_scenario(tables, seed):
    """The scenario of a seed. A method's or a model's own keys are drawn with it."""
    draw = random.Random(seed)
    method = draw.choice(sorted(tables.methods))
    model = draw.choice(sorted(set(tables.models) - TOO_SLOW))
    if method in ("fil-ver", "central-rehearsal"):
        model = draw.choice(["vee", "ebr"])
    if method in ("lander", "target", "mfcl"):
        model = "resnet8"
    image = model in IMAGES or (model not in TEXTS and draw.random() < 0.3)
    side = {"lenet": 28, "vee": 16, "ebr": 16}.get(model) or draw.choice([8, 12])
    channels = draw.choice([1, 3])
    shape = f"[{channels}, {side}, {side}]" if image else f"[{draw.choice([1, 4, 33])}]"
    settings = [("strategy", "name", f'"{method}"'), ("model", "name", f'"{model}"'),
                ("data", "name", '"synthetic"'), ("data", "shape", shape)]
    if model in TEXTS:
        settings.append(("data", "tokens", "20"))
    share = draw.choice([0.05, 0.2, 0.5])  # of the keys that are given
    tried = [key for section in tables.sections.values() for key in section]
    for key in tried + tables.methods[method] + tables.models[model]:
        if key.name in FIXED.get(key.section, set()):
            continue
        if key.full_name in GIVEN or draw.random() < share:
            value = drawn_value(key, draw)
            if value is not None:
                settings.append((key.section, key.name, value))
    return DrawnScenario(settings)
