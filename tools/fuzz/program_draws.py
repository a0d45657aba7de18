"""Files of torch.export.save: the valid one of scenarios/smoke with changed JSON, or with additional calls of operators
whose arguments are changed."""
import copy
import io
import json
import zipfile

NUMBERS = [0, 1, -1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64, 255, 1000, 4097, 65537, -2, -3, -9, 2**20, 2**28, 2**30,
           2**31 - 1, 2**31, -2**31, 2**40, 2**62, 2**63 - 1, -2**63, 2**63, 2**64, 10**30]
ODD = [None, True, "", "x", "p_conv_weight", "a" * 5000, [], {}, [[]], 0.5, -1.5, 1e308, {"as_int": 3},
       {"as_none": True}, {"as_tensor": {"name": "x"}}, {"as_float": "Infinity"}]
FOREIGN = ["aten.from_file.default", "aten.save.default", "aten.set_.source_Storage", "aten.resize_.default",
           "aten.as_strided.default", "aten.item.default", "aten.nonzero.default", "prims.device_put.default",
           "quantized.linear.default", "aten.add.out", "aten.rand.default", "aten.normal_.default", "aten.data.default",
           "aten.set_data.default", "aten.masked_select.default", "higher_order.cond", "aten.to_mkldnn.default",
           "inductor.resize_storage_bytes_.default", "aten._nested_tensor_from_mask.default"]


class Shape(tuple):
    """Shape of a tensor of ones."""


class Shapes(tuple):
    """Shapes of a list of tensors of ones."""


IMAGE = Shape((2, 4, 9, 9))
SQUARE = {"kernel_size": [2, 2], "stride": [2, 2], "padding": [0, 0]}
LSTM = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": False, "bidirectional": False,
        "batch_first": False}
CALLS = [  # operator, arguments, number of results; "list": one list of tensors
    ("scaled_dot_product_attention.default", {"query": Shape((1, 2, 5, 8)), "key": Shape((1, 2, 7, 8)),
                                              "value": Shape((1, 2, 7, 8)), "attn_mask": Shape((5, 7)),
                                              "dropout_p": 0.0, "is_causal": False}, 1),
    ("scaled_dot_product_attention.default", {"query": Shape((1, 4, 5, 8)), "key": Shape((1, 2, 7, 8)),
                                              "value": Shape((1, 2, 7, 8)), "enable_gqa": True}, 1),
    ("lstm.input", {"input": Shape((5, 2, 3)), "hx": Shapes(((1, 2, 6), (1, 2, 6))),
                    "params": Shapes(((24, 3), (24, 6), (24,), (24,))), **LSTM}, 3),
    ("lstm.input", {"input": Shape((5, 2, 3)), "hx": Shapes(((2, 2, 6), (2, 2, 6))),
                    "params": Shapes(((24, 3), (24, 6), (24, 6), (24, 6))),
                    **{**LSTM, "has_biases": False, "num_layers": 2, "train": True, "dropout": 0.5}}, 3),
    ("gru.input", {"input": Shape((5, 2, 3)), "hx": Shape((1, 2, 6)),
                   "params": Shapes(((18, 3), (18, 6), (18,), (18,))), **LSTM}, 2),
    ("rnn_tanh.input", {"input": Shape((5, 2, 3)), "hx": Shape((1, 2, 6)),
                        "params": Shapes(((6, 3), (6, 6), (6,), (6,))), **LSTM}, 2),
    ("conv1d.default", {"input": Shape((2, 4, 9)), "weight": Shape((6, 4, 3)), "stride": [1], "padding": [1],
                        "dilation": [1], "groups": 1}, 1),
    ("conv2d.default", {"input": IMAGE, "weight": Shape((6, 2, 3, 3)), "bias": Shape((6,)), "stride": [1, 1],
                        "padding": [1, 1], "dilation": [1, 1], "groups": 2}, 1),
    ("conv3d.default", {"input": Shape((1, 2, 4, 5, 5)), "weight": Shape((3, 2, 2, 2, 2)), "stride": [1, 1, 1],
                        "padding": [0, 0, 0], "dilation": [1, 1, 1], "groups": 1}, 1),
    ("conv_transpose2d.input", {"input": IMAGE, "weight": Shape((4, 3, 2, 2)), "stride": [2, 2], "padding": [0, 0],
                                "output_padding": [0, 0], "groups": 1, "dilation": [1, 1]}, 1),
    ("convolution.default", {"input": IMAGE, "weight": Shape((6, 4, 3, 3)), "bias": None, "stride": [1, 1],
                             "padding": [1, 1], "dilation": [1, 1], "transposed": False, "output_padding": [0, 0],
                             "groups": 1}, 1),
    ("batch_norm.default", {"input": IMAGE, "weight": Shape((4,)), "bias": Shape((4,)), "running_mean": Shape((4,)),
                            "running_var": Shape((4,)), "training": False, "momentum": 0.1, "eps": 1e-5,
                            "cudnn_enabled": False}, 1),
    ("instance_norm.default", {"input": IMAGE, "weight": Shape((4,)), "bias": Shape((4,)), "running_mean": None,
                               "running_var": None, "use_input_stats": True, "momentum": 0.1, "eps": 1e-5,
                               "cudnn_enabled": False}, 1),
    ("layer_norm.default", {"input": Shape((2, 3, 6)), "normalized_shape": [6], "weight": Shape((6,)),
                            "bias": Shape((6,))}, 1),
    ("group_norm.default", {"input": IMAGE, "num_groups": 2, "weight": Shape((4,)), "bias": Shape((4,))}, 1),
    ("rms_norm.default", {"input": Shape((2, 3, 6)), "normalized_shape": [6], "weight": Shape((6,))}, 1),
    ("max_pool1d.default", {"self": Shape((2, 4, 9)), "kernel_size": [2], "stride": [2], "padding": [1],
                            "dilation": [1]}, 1),
    ("max_pool2d.default", {"self": IMAGE, **SQUARE, "dilation": [1, 1]}, 1),
    ("avg_pool2d.default", {"self": IMAGE, **SQUARE}, 1),
    ("avg_pool3d.default", {"self": Shape((1, 2, 4, 4, 4)), "kernel_size": [2, 2, 2], "stride": [2, 2, 2],
                            "padding": [0, 0, 0]}, 1),
    ("adaptive_avg_pool1d.default", {"self": Shape((2, 4, 9)), "output_size": [3]}, 1),
    ("adaptive_avg_pool2d.default", {"self": IMAGE, "output_size": [3, 2]}, 1),
    ("adaptive_avg_pool3d.default", {"self": Shape((1, 2, 4, 4, 4)), "output_size": [2, 2, 2]}, 1),
    ("adaptive_max_pool2d.default", {"self": IMAGE, "output_size": [3, 2]}, 2),
    ("im2col.default", {"self": IMAGE, "kernel_size": [2, 2], "dilation": [1, 1], "padding": [0, 0],
                        "stride": [1, 1]}, 1),
    ("col2im.default", {"self": Shape((1, 4, 4)), "output_size": [3, 3], "kernel_size": [2, 2], "dilation": [1, 1],
                        "padding": [0, 0], "stride": [1, 1]}, 1),
    ("reflection_pad2d.default", {"self": IMAGE, "padding": [1, 2, 3, 4]}, 1),
    ("replication_pad2d.default", {"self": IMAGE, "padding": [1, 2, 3, 4]}, 1),
    ("constant_pad_nd.default", {"self": IMAGE, "pad": [1, -2, 3, -4], "value": 0.0}, 1),
    ("pad.default", {"self": IMAGE, "pad": [1, 2, 3, 4], "mode": "circular"}, 1),
    ("upsample_nearest2d.vec", {"input": IMAGE, "output_size": [12, 5], "scale_factors": None}, 1),
    ("upsample_bilinear2d.vec", {"input": IMAGE, "output_size": [12, 5], "align_corners": False,
                                 "scale_factors": None}, 1),
    ("upsample_bicubic2d.vec", {"input": IMAGE, "output_size": [12, 5], "align_corners": False,
                                "scale_factors": None}, 1),
    ("grid_sampler.default", {"input": IMAGE, "grid": Shape((2, 3, 3, 2)), "interpolation_mode": 0, "padding_mode": 0,
                              "align_corners": False}, 1),
    ("pixel_shuffle.default", {"self": IMAGE, "upscale_factor": 2}, 1),
    ("pixel_unshuffle.default", {"self": Shape((2, 4, 8, 8)), "downscale_factor": 2}, 1),
    ("channel_shuffle.default", {"self": IMAGE, "groups": 2}, 1),
    ("linear.default", {"input": Shape((2, 3)), "weight": Shape((4, 3)), "bias": Shape((4,))}, 1),
    ("bilinear.default", {"input1": Shape((2, 3)), "input2": Shape((2, 4)), "weight": Shape((5, 3, 4))}, 1),
    ("matmul.default", {"self": Shape((2, 3, 4)), "other": Shape((2, 4, 5))}, 1),
    ("addmm.default", {"self": Shape((3, 5)), "mat1": Shape((3, 4)), "mat2": Shape((4, 5))}, 1),
    ("baddbmm.default", {"self": Shape((2, 3, 5)), "batch1": Shape((2, 3, 4)), "batch2": Shape((2, 4, 5))}, 1),
    ("einsum.default", {"equation": "bij,bjk->bik", "tensors": Shapes(((2, 3, 4), (2, 4, 5)))}, 1),
    ("cdist.default", {"x1": Shape((2, 3)), "x2": Shape((4, 3))}, 1),
    ("cat.default", {"tensors": Shapes(((2, 3), (4, 3))), "dim": 0}, 1),
    ("stack.default", {"tensors": Shapes(((2, 3), (2, 3))), "dim": 0}, 1),
    ("expand.default", {"self": Shape((1, 3)), "size": [4, 3]}, 1),
    ("repeat.default", {"self": Shape((1, 3)), "repeats": [4, 3]}, 1),
    ("repeat_interleave.self_int", {"self": Shape((2, 3)), "repeats": 2, "dim": 0}, 1),
    ("view.default", {"self": Shape((4, 6)), "size": [2, 12]}, 1),
    ("unfold.default", {"self": Shape((4, 6)), "dimension": 0, "size": 2, "step": 1}, 1),
    ("slice.Tensor", {"self": Shape((4, 6)), "dim": 1, "start": 1, "end": 5, "step": 2}, 1),
    ("narrow.default", {"self": Shape((4, 6)), "dim": 1, "start": 1, "length": 3}, 1),
    ("select.int", {"self": Shape((4, 6)), "dim": 1, "index": 2}, 1),
    ("transpose.int", {"self": Shape((4, 6)), "dim0": 0, "dim1": 1}, 1),
    ("permute.default", {"self": Shape((4, 6, 2)), "dims": [2, 0, 1]}, 1),
    ("roll.default", {"self": Shape((4, 6)), "shifts": [2, 1], "dims": [0, 1]}, 1),
    ("diagonal.default", {"self": Shape((4, 6)), "offset": 1, "dim1": 0, "dim2": 1}, 1),
    ("tril.default", {"self": Shape((4, 6)), "diagonal": 1}, 1),
    ("cumsum.default", {"self": Shape((4, 6)), "dim": 1}, 1),
    ("topk.default", {"self": Shape((4, 6)), "k": 2, "dim": 1}, 2),
    ("softmax.int", {"self": Shape((4, 6)), "dim": 1}, 1),
    ("glu.default", {"self": Shape((4, 6)), "dim": 1}, 1),
    ("chunk.default", {"self": Shape((4, 6)), "chunks": 2, "dim": 1}, "list"),
    ("split.Tensor", {"self": Shape((4, 6)), "split_size": 3, "dim": 1}, "list"),
    ("unbind.int", {"self": Shape((2, 6)), "dim": 0}, "list"),
    ("arange.start_step", {"start": 0, "end": 9, "step": 2}, 1),
    ("linspace.default", {"start": 0.0, "end": 9.0, "steps": 5}, 1),
    ("eye.m", {"n": 3, "m": 4}, 1),
    ("zeros.default", {"size": [3, 4]}, 1),
    ("new_empty.default", {"self": Shape((2,)), "size": [3, 4]}, 1),
    ("full.default", {"size": [3, 4], "fill_value": 2}, 1),
    ("remainder.Scalar", {"self": Shape((4, 6)), "other": 3}, 1),
    ("pow.Tensor_Scalar", {"self": Shape((4, 6)), "exponent": 3}, 1),
    ("clamp.default", {"self": Shape((4, 6)), "min": 0, "max": 3}, 1),
    ("masked_fill.Scalar", {"self": Shape((4, 6)), "mask": Shape((4, 6)), "value": 3}, 1),
    ("dropout.default", {"input": Shape((4, 6)), "p": 0.5, "train": True}, 1),
    ("feature_dropout.default", {"input": IMAGE, "p": 0.5, "train": True}, 1),
    ("bernoulli_.float", {"self": Shape((4, 6)), "p": 0.5}, 1)]


class Program:
    """The valid program with calls inserted before its own."""

    def __init__(self, entries):
        self.entries = entries
        self.document = json.loads(entries["model/models/model.json"])
        self.calls = []

    def call(self, target, inputs, results=1):
        names = [f"made{len(self.calls)}_{i}" for i in range(2 if results == "list" else results)]
        tensors = [{"name": name} for name in names]
        outputs = [{"as_tensors": tensors}] if results == "list" else [{"as_tensor": tensor} for tensor in tensors]
        self.calls.append({"target": "torch.ops.aten." + target, "outputs": outputs, "metadata": {}, "name": names[0],
                           "inputs": [{"name": name, "arg": value, "kind": 1} for name, value in inputs.items()]})
        return tensors[0]

    def ones(self, shape):
        return self.call("ones.default", {"size": {"as_ints": list(shape)}})

    def argument(self, value):
        if value is None:
            return {"as_none": True}
        if isinstance(value, Shape):
            return {"as_tensor": self.ones(value)}
        if isinstance(value, Shapes):
            return {"as_tensors": [self.ones(shape) for shape in value]}
        for kind, tag in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string"),
                          (list, "as_ints")):
            if isinstance(value, kind):
                return {tag: value}
        raise TypeError(value)

    def add(self, target, arguments, results):
        """Adds a call whose sum is added to the rows."""
        made = self.call(target, {name: self.argument(value) for name, value in arguments.items()}, results)
        total = self.call("sum.default", {"self": {"as_tensor": made}})
        rows = self.call("add.Tensor", {"self": {"as_tensor": {"name": "x"}}, "other": {"as_tensor": total}})
        nodes = self.document["graph_module"]["graph"]["nodes"]
        nodes[0]["inputs"][0]["arg"] = {"as_tensor": rows}
        nodes[:0] = self.calls

    def content(self):
        return {**self.entries, "model/models/model.json": json.dumps(self.document).encode()}


def read_entries(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(entries):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return made.getvalue()


def changed_number(value, draw, chance):
    """Returns the value with each number replaced by another one with probability `chance`."""
    if isinstance(value, (Shape, Shapes)):
        return type(value)(changed_number(part, draw, chance) for part in value)
    if isinstance(value, (list, tuple)):
        made = [changed_number(part, draw, chance) for part in value]
        return made + [1] if draw.random() < chance / 3 else made[:-1] if draw.random() < chance / 3 else made
    if isinstance(value, bool):
        return value if draw.random() >= chance else not value
    if isinstance(value, int):
        return value if draw.random() >= chance else draw.choice(NUMBERS)
    if isinstance(value, float):
        return value if draw.random() >= chance else draw.choice([0.0, 1.0, -1.0, 2.0, 1e300, 1e-300, 0.5])
    return value


def drawn_call(entries, draw):
    target, arguments, results = draw.choice(CALLS)
    program = Program(entries)
    chance = draw.choice([0.05, 0.1, 0.3])
    program.add(target, {name: changed_number(value, draw, chance) for name, value in arguments.items()}, results)
    return program.content()


def places_of(value, found, holder=None, key=None):
    if holder is not None:
        found.append((holder, key))
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for inner in keys:
        places_of(value[inner], found, value, inner)
    return found


def change_json(document, draw):
    places = places_of(document, [])
    nodes = document.get("graph_module", {}).get("graph", {}).get("nodes") or []
    way = draw.choice(["odd", "number", "number", "delete"] + ["repeat", "swap", "foreign", "name", "argument"] *
                      bool(nodes))
    if way in ("odd", "number", "delete"):
        if way == "number":
            places = [at for at in places if type(at[0][at[1]]) in (int, float)] or places
        holder, key = draw.choice(places)
        if way == "delete":
            del holder[key]
        else:
            holder[key] = copy.deepcopy(draw.choice(ODD if way == "odd" else NUMBERS))
    elif way == "repeat":
        nodes.insert(draw.randrange(len(nodes)), copy.deepcopy(draw.choice(nodes)))
    elif way == "swap":
        i, j = draw.randrange(len(nodes)), draw.randrange(len(nodes))
        nodes[i], nodes[j] = nodes[j], nodes[i]
    elif way == "foreign":
        draw.choice(nodes)["target"] = "torch.ops." + draw.choice(FOREIGN)
    elif way == "name":
        names = [holder for holder, key in places if key == "name" and isinstance(holder[key], str)]
        draw.choice(names)["name"] = draw.choice(names)["name"]
    else:
        chosen, other = draw.choice(nodes)["inputs"], draw.choice(nodes)["inputs"]
        draw.choice(chosen)["arg"] = copy.deepcopy(draw.choice(other)["arg"])


def drawn_archive(entries, draw):
    """Valid archive with damage to its JSON, its tensors or its list of entries."""
    made = dict(entries)
    kind = draw.choice(["program"] * 6 + ["tensors"] * 3 + ["missing", "short", "renamed"])
    if kind in ("program", "tensors"):
        name = "model/models/model.json" if kind == "program" else "model/data/weights/model_weights_config.json"
        document = json.loads(made[name])
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            try:
                change_json(document, draw)
            except (TypeError, KeyError, IndexError, ValueError, AttributeError):
                pass  # an earlier change has removed its target
        made[name] = json.dumps(document).encode()
        return made
    name = draw.choice(sorted(made))
    content = made.pop(name)
    if kind == "short":
        made[name] = content[:draw.randrange(len(content) + 1)]
    elif kind == "renamed":
        made[draw.choice([name.upper(), "model/" + name, "../" + name, "model/models/other.json"])] = content
    return made


def drawn_program(entries, draw):
    """Content of a random file. @param entries {name: content} of the valid one"""
    return packed((drawn_call if draw.random() < 0.6 else drawn_archive)(entries, draw))
