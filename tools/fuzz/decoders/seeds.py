"""Seed inputs of the decoders: the valid inputs of reader_cases.py, messages between a run and a node, and others."""
import io
import os
import struct
import subprocess
import sys
import zipfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from disturbed_runs import ROOT  # noqa: E402
from free_port import free_port  # noqa: E402
from node_streams import Link, MessageReader, framed  # noqa: E402
from reader_cases import CASES  # noqa: E402

# Decoders whose seeds are the inputs of cases in reader_cases.py.
OF_CASES = {"toml": ["toml"], "safetensors": ["safetensors"], "idx": ["idx"], "gz": ["gz"], "xz": ["xz", "xz_streams"],
            "idx_images": ["idx_images"], "cifar": ["cifar"], "pacs": ["pacs"], "jpeg": ["jpeg"],
            "partition": ["partition"], "availability": ["availability"], "archive": ["module"], "module": ["module"],
            "run_json": ["run_json"],
            "checkpoint": ["forged_checkpoint", "forged_memories_of_fil_ver", "forged_memories_of_stsa"]}
# Cases whose readers need folders or the whole program: only tools/fuzz/run fuzzes them.
BY_PROGRAM_ONLY = {"lists", "torn_checkpoint", "forged_memories_of_lga", "forged_memories_of_fedhaf",
                   "forged_memories_of_osi_fl"}
BY_PROGRAM_ONLY |= {"png_folder", "csv", "quoted_csv", "own_safetensors", "npz", "packed_npz", "npy", "high_bytes_npy",
                    "links", "capacity", "forged_module_program"}  # the inputs are whole scenarios
BY_PROGRAM_ONLY |= {"palette_png", "deep_png", "progressive_jpeg", "ycck_jpeg"}
BY_PROGRAM_ONLY |= {f"forged_memories_of_tiny_{run}" for run in ("er", "scaffold", "stsa", "fed_il_plus", "moon",
                                                                 "buffered")}
RUN_FILES = ("summary.json", "metrics.jsonl", "timeline.jsonl", "scenario.toml")  # in the order of state.cpp


def _png(side=8):
    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    rows = b"".join(b"\0" + bytes((x * y) % 256 for x in range(side)) for y in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def _texts():
    return {"sweep": [b'[sweep]\nscenarios = ["a.toml"]\nseeds = "1-5"\n[sweep.over]\ntraining.learning_rate = '
                      b'[0.1, 0.01]\n[sweep.set]\nrounds.per_task = 3\n'],
            "addresses": [b"127.0.0.1:7100", b"[::1]:80", b"host.example:1"],
            "words": [b"1,2,7-9", b"rounds.cohort=1,2,[3, 4]", b"final_accuracy>=70"]}


def _small_archive():
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("net/models/model.json", "net/data/weights/weight_0", "net/archive_version"):
            archive.writestr(name, name * 3)
    return packed.getvalue()


class _Said:
    """Records all bytes on a link, by direction."""

    def __init__(self):
        self.bytes = {"run": b"", "node": b""}

    def hearing(self, side):
        def hear(number, data):
            if number == 0:
                self.bytes[side] += data
            return data
        return hear


def _conversation(program, folder, scenario):
    """Returns {"run": bytes, "node": bytes}: the traffic of a run with one node, by sender."""
    port = free_port()
    said = _Said()
    link = Link(port, passing=said.hearing("node"), answering=said.hearing("run"))
    node = subprocess.Popen([program, "node", "--join", link.address, "--threads", "1"], stdout=subprocess.DEVNULL)
    try:
        subprocess.run([program, "run", os.path.join(ROOT, "scenarios", "smoke", scenario), "--quiet", "--out",
                        os.path.join(folder, "run-" + scenario), "--accept", f"127.0.0.1:{port}", "--workers-min", "1",
                        "--threads", "1", "--set", "rounds.per_task=2"], check=True)
        node.wait(timeout=30)
        link.close()
    finally:
        node.kill()
        node.wait()
    return said.bytes


def _network(program, folder):
    messages, streams = [], []
    for scenario in ("fedprox.toml", "fil-ver.toml"):
        for stream in _conversation(program, folder, scenario).values():
            streams.append(b"\x40" + stream[:20000])
            messages += MessageReader().feed(stream)
    by_kind = {}
    for message in sorted(messages, key=len):
        by_kind.setdefault(message[0], []).append(message)
    kept = [message for of_kind in by_kind.values() for message in (of_kind[0], of_kind[len(of_kind) // 2])]
    streams.append(b"\x07mneme\n\x03\x00" + b"".join(framed(message) for message in kept[:4]))
    return {"messages": kept, "frames": streams}


def _run_folder(program, folder):
    out = os.path.join(folder, "whole-run")
    subprocess.run([program, "run", os.path.join(ROOT, "scenarios", "smoke", "fedprox.toml"), "--quiet", "--out", out],
                   check=True)
    found = []
    for number, name in enumerate(RUN_FILES):
        with open(os.path.join(out, name), "rb") as file:
            found.append(bytes([number]) + file.read()[:4000])
    return found


def honest_inputs(program, folder):
    """Returns the valid inputs of each decoder, {name: [bytes]}."""
    cases = {name: CASES[name](os.path.join(folder, name), program).honest
             for names in OF_CASES.values() for name in names}
    made = {decoder: [bytes(cases[name]) for name in names] for decoder, names in OF_CASES.items()}
    made |= _texts() | _network(program, folder)
    made |= {"png": [_png()], "run_folder": _run_folder(program, folder), "tensors": [bytes(16)]}  # zero tensor maps
    made["archive"].append(_small_archive())
    made["pacs"] = [made["pacs"][0][:8 * 3074]]
    return made


def write_corpus(folder, decoders, inputs):
    """Writes one file per input, whose first byte is the decoder's number within its group."""
    os.makedirs(folder, exist_ok=True)
    for number, name in enumerate(decoders):
        for count, content in enumerate(inputs[name]):
            with open(os.path.join(folder, f"{name}-{count}"), "wb") as file:
                file.write(bytes([number]) + content)
