"""Random damage to bytes, like damage by a disk, a download or an editing mistake."""

LENGTHS = [0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF]
NUMBERS = [b"0", b"-1", b"1e999", b"99999999999999999999", b"nan", b"[]", b"{}", b"\"\"", b"9223372036854775807"]


def _flip(data, draw):
    at = draw.randrange(len(data))
    data[at] ^= 1 << draw.randrange(8)


def _byte(data, draw):
    data[draw.randrange(len(data))] = draw.choice([0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)])


def _integer(data, draw):
    """Replaces an integer that may be a length or a count, in either byte order."""
    size = draw.choice([2, 4, 8])
    value = draw.choice(LENGTHS) & ((1 << 8 * size) - 1)
    at = draw.randrange(len(data))
    data[at:at + size] = value.to_bytes(size, draw.choice(["little", "big"]))


def _cut(data, draw):
    del data[draw.randrange(len(data)):]


def _hole(data, draw):
    at = draw.randrange(len(data))
    del data[at:at + draw.choice([1, 2, 8, 100])]


def _twice(data, draw):
    at = draw.randrange(len(data))
    part = data[at:at + draw.choice([1, 8, 64, 4096])]
    data[at:at] = part * draw.choice([1, 2, 50])


def _swap(data, draw):
    a, b, size = draw.randrange(len(data)), draw.randrange(len(data)), draw.choice([1, 4, 16])
    part = data[a:a + size]
    data[a:a + size] = data[b:b + size]
    data[b:b + size] = part


def _number(data, draw):
    """Replaces a number in a text with another one."""
    digits = [at for at in range(min(len(data), 20000)) if 48 <= data[at] <= 57]
    if not digits:
        return _byte(data, draw)
    first = last = draw.choice(digits)
    while last < len(data) and 48 <= data[last] <= 57:
        last += 1
    data[first:last] = draw.choice(NUMBERS)


def _line(data, draw):
    lines = bytes(data).split(b"\n")
    at = draw.randrange(len(lines))
    if draw.random() < 0.5:
        del lines[at]
    else:
        lines.insert(draw.randrange(len(lines)), lines[at])
    data[:] = b"\n".join(lines)


KINDS = [_flip, _byte, _byte, _integer, _integer, _cut, _hole, _twice, _swap, _number, _line]


def mutated(original, draw, head_bytes=4096):
    """Returns a copy with one to five mutations. Half of the time they are within the first `head_bytes`, in the
    headers."""
    data = bytearray(original)
    for _ in range(draw.choice([1, 1, 2, 3, 5])):
        if not data:
            break
        damage = draw.choice(KINDS)
        if draw.random() < 0.5 and len(data) > head_bytes:
            head = data[:head_bytes]
            damage(head, draw)
            data[:head_bytes] = head
        else:
            damage(data, draw)
    return bytes(data)
