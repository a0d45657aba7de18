"""Generates calls of LibTorch's operators in TorchScript: valid calls with some numbers changed."""

MIN, MAX = -2**63, 2**63 - 1
NUMBERS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64, 1000, 4097, 65537, -1, -2, -3, -9, 2**20, 2**30, 2**31 - 1, 2**31,
           2**40, 2**62, -2**31, MAX, MIN + 1]
SCALES = ["0.5", "1.", "2.", "0.", "-1.", "1e300", "1e-300", "1e-18", "1e-8", "3e-19", "1e9"]
IMAGE = "torch.ones([2, 4, 9, 9])"
# Templates of calls: "{}" is a number that may be changed, "{f}" a scale. The numbers of the valid call follow.
CALLS = [
    ("torch.scaled_dot_product_attention(torch.ones([{}, {}, {}, {}]), torch.ones([{}, {}, {}, {}]), "
     "torch.ones([{}, {}, {}, {}]))", [1, 2, 5, 8, 1, 2, 7, 8, 1, 2, 7, 8]),
    ("torch.scaled_dot_product_attention(torch.ones([{}, {}, {}]), torch.ones([{}, {}, {}]), "
     "torch.ones([{}, {}, {}]), torch.zeros([{}, {}]))", [2, 5, 8, 2, 7, 8, 2, 7, 8, 5, 7]),
    ("(torch.lstm(torch.ones([{}, {}, {}]), [torch.ones([{}, {}, {}]), torch.ones([{}, {}, {}])], "
     "[torch.ones([{}, {}]), torch.ones([{}, {}]), torch.ones([{}]), torch.ones([{}])], True, {}, 0., False, False, "
     "False))[0]", [5, 2, 3, 1, 2, 6, 1, 2, 6, 24, 3, 24, 6, 24, 24, 1]),
    ("(torch.gru(torch.ones([{}, {}, {}]), torch.ones([{}, {}, {}]), [torch.ones([{}, {}]), torch.ones([{}, {}]), "
     "torch.ones([{}]), torch.ones([{}])], True, {}, 0., False, False, False))[0]",
     [5, 2, 3, 1, 2, 6, 18, 3, 18, 6, 18, 18, 1]),
    ("torch.conv2d(" + IMAGE + ", torch.ones([{}, {}, {}, {}]), None, [{}, {}], [{}, {}], [{}, {}], {})",
     [6, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1]),
    ("torch.conv_transpose2d(" + IMAGE + ", torch.ones([{}, {}, {}, {}]), None, [{}, {}], [{}, {}], [{}, {}], {}, "
     "[{}, {}])", [4, 3, 2, 2, 2, 2, 0, 0, 0, 0, 1, 1, 1]),
    ("torch.conv1d(torch.ones([2, 4, 9]), torch.ones([{}, {}, {}]), None, [{}], [{}], [{}], {})",
     [6, 4, 3, 1, 1, 1, 1]),
    ("torch.max_pool1d(torch.ones([2, 4, 9]), [{}], [{}], [{}], [{}], True)", [2, 2, 1, 1]),
    ("torch.max_pool2d(" + IMAGE + ", [{}, {}], [{}, {}], [{}, {}], [{}, {}])", [2, 2, 2, 2, 0, 0, 1, 1]),
    ("torch.avg_pool2d(" + IMAGE + ", [{}, {}], [{}, {}], [{}, {}])", [2, 2, 2, 2, 0, 0]),
    ("torch.adaptive_avg_pool2d(" + IMAGE + ", [{}, {}])", [3, 2]),
    ("torch.im2col(" + IMAGE + ", [{}, {}], [{}, {}], [{}, {}], [{}, {}])", [2, 2, 1, 1, 0, 0, 1, 1]),
    ("torch.col2im(torch.ones([{}, {}, {}]), [{}, {}], [{}, {}], [{}, {}], [{}, {}], [{}, {}])",
     [1, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1]),
    ("torch.replication_pad2d(" + IMAGE + ", [{}, {}, {}, {}])", [1, 2, 3, 4]),
    ("torch.reflection_pad2d(" + IMAGE + ", [{}, {}, {}, {}])", [1, 2, 3, 4]),
    ("torch.constant_pad_nd(" + IMAGE + ", [{}, {}, {}, {}], 0)", [1, -2, 3, -4]),
    ("torch.pad(" + IMAGE + ", [{}, {}, {}, {}], \"circular\")", [1, 2, 3, 4]),
    ("torch.pad(torch.ones([1, 1, 3, 3, 3]), [{}, {}, {}, {}, {}, {}], \"replicate\")", [1, 2, 1, 1, 0, 1]),
    ("torch._upsample_bilinear2d_aa(" + IMAGE + ", [{}, {}], False, {f}, {f})", [6, 6]),
    ("torch._upsample_bicubic2d_aa(" + IMAGE + ", [{}, {}], False, {f}, {f})", [6, 6]),
    ("torch.upsample_nearest2d(" + IMAGE + ", [{}, {}], {f}, {f})", [6, 6]),
    ("torch.upsample_bicubic2d(" + IMAGE + ", [{}, {}], False, {f}, {f})", [6, 6]),
    ("torch.grid_sampler(" + IMAGE + ", torch.ones([{}, {}, {}, {}]), {}, {}, False)", [2, 3, 3, 2, 0, 0]),
    ("torch.batch_norm(" + IMAGE + ", None, None, torch.ones([{}]), torch.ones([{}]), False, 0.1, 1e-5, False)",
     [4, 4]),
    ("torch.instance_norm(" + IMAGE + ", torch.ones([{}]), None, None, None, True, 0.1, 1e-5, False)", [4]),
    ("torch.group_norm(" + IMAGE + ", {}, torch.ones([{}]), torch.ones([{}]))", [2, 4, 4]),
    ("torch.layer_norm(" + IMAGE + ", [{}, {}], torch.ones([{}, {}]))", [9, 9, 9, 9]),
    ("torch.floordiv({}, {})", [7, 2]), ("torch.remainder({}, {})", [7, 2]), ("torch.gcd({}, {})", [7, 2]),
    ("torch.__lshift__({}, {})", [7, 2]), ("torch.__rshift__({}, {})", [7, 2]), ("torch.pow({}, {})", [7, 2]),
    ("torch.div(torch.sub(torch.full([2], {}, dtype=4), {}), {}, rounding_mode=\"trunc\")", [7, 1, 2]),
    ("torch.floor_divide(torch.sub(torch.full([2], {}, dtype=4), {}), {})", [7, 1, 2]),
    ("torch.remainder(torch.sub(torch.full([2], {}, dtype=4), {}), torch.full([2], {}, dtype=4))", [7, 1, 2]),
    ("torch.fmod(torch.sub(torch.full([9], {}, dtype=3), {}), {})", [7, 1, 2]),
    ("torch.repeat_interleave(torch.full([{}], {}, dtype=4))", [5, 2]),
    ("torch.repeat_interleave(" + IMAGE + ", {}, {})", [2, 1]),
    ("torch.expand(torch.ones([1, 4]), [{}, {}])", [3, 4]), ("torch.repeat(torch.ones([2, 4]), [{}, {}])", [1, 2]),
    ("torch.arange({}, {}, {})", [0, 9, 2]), ("torch.linspace(0., 1., {})", [5]), ("torch.eye({}, {})", [3, 4]),
    ("torch.one_hot(torch.full([{}], {}, dtype=4), {})", [2, 1, 3]), ("torch.zeros([{}, {}])", [3, 4]),
    ("torch.stack(torch.split(torch.ones([{}]), {}))", [8, 2]),
    ("torch.stack(torch.unbind(torch.ones([{}, {}])))", [3, 4]),
    ("torch.index_select(" + IMAGE + ", {}, torch.full([2], {}, dtype=4))", [1, 3]),
    ("torch.gather(torch.ones([3, 4]), {}, torch.full([{}, {}], {}, dtype=4))", [1, 3, 2, 1]),
    ("torch.scatter_add(torch.ones([3, 4]), {}, torch.full([{}, {}], {}, dtype=4), torch.ones([{}, {}]))",
     [1, 3, 2, 1, 3, 2]),
    ("torch.embedding(torch.ones([{}, {}]), torch.full([{}], {}, dtype=4))", [3, 4, 2, 1]),
    ("torch.take(torch.ones([{}]), torch.full([{}], {}, dtype=4))", [5, 2, 1]),
    ("torch.slice(" + IMAGE + ", {}, {}, {}, {})", [1, 0, 3, 1]),
    ("torch.narrow(" + IMAGE + ", {}, {}, {})", [1, 1, 2]),
    ("torch.unfold(" + IMAGE + ", {}, {}, {})", [2, 3, 2]), ("torch.roll(" + IMAGE + ", [{}], [{}])", [2, 1]),
    ("torch.diagonal(" + IMAGE + ", {}, {}, {})", [1, 2, 3]), ("torch.tril(torch.ones([{}, {}]), {})", [3, 4, 1]),
    ("torch.diag_embed(torch.ones([{}]), {})", [3, 1]), ("(torch.topk(torch.ones([{}]), {}))[0]", [5, 3]),
    ("torch.pixel_shuffle(" + IMAGE + ", {})", [2]), ("torch.channel_shuffle(" + IMAGE + ", {})", [2]),
    ("torch.histc(torch.ones([{}]), {}, {}, {})", [5, 4, 0, 2]),
    ("torch.cdist(torch.ones([{}, {}]), torch.ones([{}, {}]))", [3, 2, 4, 2]),
    ("torch.len(torch.mul([1, 2], {}))", [3]), ("torch.len(torch.replace(\"aaa\", \"a\", \"b\", {}))", [2]),
    ("(torch._native_multi_head_attention(torch.ones([{}, {}, {}]), torch.ones([2, 5, 8]), torch.ones([2, 5, 8]), "
     "{}, {}, torch.ones([{}, 8]), torch.ones([{}]), torch.ones([{}, 8]), torch.ones([{}])))[0]",
     [2, 5, 8, 8, 2, 24, 24, 8, 8]),
]


def drawn_call(draw):
    """Returns code lines that call a random operator with some numbers changed, and use its result."""
    text, numbers = draw.choice(CALLS)
    numbers = list(numbers)
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        numbers[draw.randrange(len(numbers))] = draw.choice(NUMBERS)
    # Constants are folded while the module is loaded; numbers derived from the rows are known only during a call.
    known = draw.random() < 0.5
    words = iter([str(number) if known else f"torch.mul({number}, one)" for number in numbers])
    pieces = text.replace("{f}", "\0").split("{}")
    made = pieces[0] + "".join(next(words) + piece for piece in pieces[1:])
    while "\0" in made:
        made = made.replace("\0", draw.choice(SCALES), 1)
    is_number = made.startswith(("torch.floordiv", "torch.gcd", "torch.__", "torch.len", "torch.pow")) or (
        made.startswith("torch.remainder(") and "full" not in made)
    sums = "y" if is_number else "torch.sum(y)"
    return f"    one = torch.sub(torch.dim(x), 3)\n    y = {made}\n    x = torch.add(x, torch.mul({sums}, 0))\n"
