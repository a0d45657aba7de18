"""Selects nets that fit a method, and matching keys of [model] and [data]."""

IMAGES = {"cnn", "convit", "ebr", "efficientnet-lite0", "lenet", "resnet8", "resnet18", "resnet32", "resnet50",
          "resnet152", "vee", "vit"}
TEXTS = {"bert", "lstm"}
# Nets that exceed the time limit of a test even at their smallest width.
TOO_SLOW = {"efficientnet-lite0", "resnet50", "resnet152"}
FROZEN = {"split-fedavg", "split-fedprox", "split-oracle", "fed-lwf-2t", "fedhaf", "fed-cil"}
PROMPTED = {"fed-codap", "fed-dualp", "fed-cprompt", "pilora"}
NETS = {"fil-ver": ["vee", "ebr"], "central-rehearsal": ["vee", "ebr"], "lander": ["resnet8"], "target": ["resnet8"],
        "mfcl": ["resnet8"], "podnet": ["resnet8", "resnet18", "resnet32"], "afc": ["resnet8", "resnet18", "resnet32"],
        "dytox": ["convit"], **{name: ["vit"] for name in PROMPTED}}
SIDES = {"lenet": 28, "vee": 16, "ebr": 16}
ROW_LAYERS = ['["linear 5", "batch-norm", "relu", "linear classes"]',
              '["linear 4", "residual [", "linear 4", "tanh", "]", "linear classes"]',
              '["linear classes"]', '["linear 6", "layer-norm", "gelu", "dropout 0.2", "linear classes"]']
IMAGE_LAYERS = ['["conv 3 3x3 pad 1", "batch-norm", "relu", "max-pool 2", "flatten", "linear classes"]',
                '["conv 4 3x3", "group-norm 2", "silu", "global-avg-pool", "linear classes"]',
                '["patch-embedding 4 8", "residual [", "attention 2", "]", "first-token", "linear classes"]',
                '["subsample 2 4", "residual [", "conv 4 3x3 pad 1", "] shortcut [", "conv 4 1x1", "]", "flatten", '
                '"linear classes"]']
TOKEN_LAYERS = ['["embedding 4", "lstm 5", "last-token", "linear classes"]']


def drawn_net(method, models, draw):
    """Returns the name of a model, usually one that fits the method."""
    fast = sorted(set(models) - TOO_SLOW)
    if method in NETS and draw.random() < 0.9:
        return draw.choice(NETS[method])
    if method == "stsa" and draw.random() < 0.4:
        return "vit"
    return draw.choice(fast)


def drawn_layers(kind, draw):
    """Value of model.layers for rows of this kind: "images", "numbers" or "tokens"."""
    return draw.choice({"images": IMAGE_LAYERS, "numbers": ROW_LAYERS, "tokens": TOKEN_LAYERS}[kind])


def settings_of_net(method, model, draw):
    """Settings of [model] and [strategy] that the method requires for the net; None if they may be drawn at random."""
    settings = {}
    if method in PROMPTED or method in FROZEN or (method == "stsa" and model == "vit" and draw.random() < 0.8):
        if draw.random() < 0.9:
            settings["model.weights"] = '"as-drawn"'
    elif draw.random() < 0.05:
        settings["model.weights"] = '"as-drawn"'
    if method == "stsa" and "model.weights" in settings:
        settings["strategy.adapter"] = draw.choice(['"none"', '"pilora"', '"fed-cprompt"'])
    if model in ("vit", "convit", "bert"):
        heads = draw.choice([1, 2, 3])
        settings["model.heads"] = str(heads)
        settings["model.width"] = str(heads * draw.choice([2, 4, 8]))
    if model.startswith("resnet"):
        settings["model.width"] = str(draw.choice([2, 3, 4]))
    if method in PROMPTED or method == "stsa":
        settings["model.depth"] = str(draw.choice([2, 3]))
        settings["model.trainable"] = '"all"'
        settings["model.adapter"] = "0"
    return settings
