"""Reports of nodes as values: parsed from a message, changed, and serialized again.

The format is that of runtime/federation/wave_serialization.cpp.
"""
import struct

REPORT = 10  # node_message::report
DTYPE_BYTES = {0: 1, 1: 1, 2: 2, 3: 4, 4: 8, 5: 2, 6: 4, 7: 8, 11: 1, 15: 2}
ITSELF, NAMED, NAME = 0, 1, 2


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def __call__(self, form):
        values = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return values[0] if len(values) == 1 else list(values)

    def bytes(self, count):
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count:self.at]

    def text(self):
        return self.bytes(self("Q"))

    def list(self, item):
        return [item() for _ in range(self("Q"))]


class Writer:
    def __init__(self):
        self.out = bytearray()

    def __call__(self, form, *values):
        self.out += struct.pack("<" + form, *values)

    def text(self, text):
        self("Q", len(text))
        self.out += text

    def list(self, items, write):
        self("Q", len(items))
        for item in items:
            write(item)


def decoded(message):
    """Report in a message, or None for other messages."""
    if not message or message[0] != REPORT:
        return None
    read = Reader(message)
    read("B")
    report = {"heard": read("Q"), "busy_ns": read("q"), "shard": read("I"), "lists": read("B")}
    maps, tensors = [0], [0]  # numbers of maps and tensors so far

    def job_id():
        return read("QII")

    def tensor(exchanged):
        found = {"name": read.text(), "number": read("Q")}
        if found["number"] != tensors[0] + 1:
            return found
        tensors[0] += 1
        found["comes"] = read("B") if exchanged else None
        if found["comes"] in (NAMED, NAME):
            found["digest"] = read.bytes(16)
        if found["comes"] != NAME:
            found["dtype"] = read("b")
            found["sizes"] = read.list(lambda: read("q"))
            count = 1
            for size in found["sizes"]:
                count *= size
            found["data"] = read.bytes(count * DTYPE_BYTES[found["dtype"]])
        return found

    def tensor_map(exchanged):
        number = read("Q")
        if number != maps[0] + 1:
            return {"number": number}
        maps[0] += 1
        return {"number": number, "tensors": read.list(lambda: tensor(exchanged))}

    def figures():
        return [read.text(), read("d")]

    def losses():
        number = read("Q")
        if number != maps[0] + 1:
            return {"number": number}
        maps[0] += 1
        return {"number": number, "rows": read("d"), "sum": read("d"), "terms": read.list(figures)}

    def issued():
        return {"id": job_id(), "kind": read("B"), "options": read("Q"), "rows": read("q"), "bytes": read("q"),
                "width": read("q")}

    def finished():
        return {"id": read("Q"), "memory": tensor_map(True), "upload": tensor_map(False), "rows": read("q"),
                "to_proxy": tensor_map(False), "counts": read.list(figures), "losses": losses(), "bytes": read("q"),
                "proxy_bytes": read("q")}

    def failed():
        return {"id": job_id(), "client": read("I"), "round": read("I"), "reason": read.text()}

    report["issued"] = read.list(issued)
    report["released"] = read.list(lambda: read.list(job_id)) if report["lists"] else []
    report["finished"] = read.list(finished)
    report["failed"] = read.list(failed)
    report["last"] = read("B")
    assert read.at == len(message), (read.at, len(message))
    return report


def encoded(report):
    write = Writer()
    write("BQqIB", REPORT, report["heard"], report["busy_ns"], report["shard"], report["lists"])

    def job_id(value):
        write("QII", *value)

    def tensor(value):
        write.text(value["name"])
        write("Q", value["number"])
        if value.get("comes") is not None:
            write("B", value["comes"])
        if "digest" in value:
            write.out += value["digest"]
        if "dtype" in value:
            write("b", value["dtype"])
            write.list(value["sizes"], lambda size: write("q", size))
            write.out += value["data"]

    def tensor_map(value):
        write("Q", value["number"])
        if "tensors" in value:
            write.list(value["tensors"], tensor)

    def figures(value):
        write.text(value[0])
        write("d", value[1])

    def losses(value):
        write("Q", value["number"])
        if "terms" in value:
            write("dd", value["rows"], value["sum"])
            write.list(value["terms"], figures)

    def issued(value):
        job_id(value["id"])
        write("BQqqq", value["kind"], value["options"], value["rows"], value["bytes"], value["width"])

    def finished(value):
        write("Q", value["id"])
        tensor_map(value["memory"])
        tensor_map(value["upload"])
        write("q", value["rows"])
        tensor_map(value["to_proxy"])
        write.list(value["counts"], figures)
        losses(value["losses"])
        write("qq", value["bytes"], value["proxy_bytes"])

    def failed(value):
        job_id(value["id"])
        write("II", value["client"], value["round"])
        write.text(value["reason"])

    write.list(report["issued"], issued)
    if report["lists"]:
        write.list(report["released"], lambda batch: write.list(batch, job_id))
    write.list(report["finished"], finished)
    write.list(report["failed"], failed)
    write("B", report["last"])
    return bytes(write.out)
