"""Shared code of studies that generate their data: cached runs, arrays of labels, cached features."""
import json
import os
import pathlib
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "fuzz"))
from array_bytes import Array  # noqa: E402


def run_once(program, scenario, out, settings):
    """Summary of a run with these keys set, on one CPU thread. A completed run is not repeated."""
    if not (out / "summary.json").exists():
        overrides = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        subprocess.run([program, "run", str(scenario), "--threads", "1", "--quiet", "--out", str(out), "--set",
                        "worker.device=cpu", *overrides], check=True)
    return json.loads((out / "summary.json").read_text())


def labels_array(labels):
    """Labels in the format of data.name = "arrays"."""
    return Array("int64", [len(labels)], labels)


def feature_tables(cache):
    """(features float32, mask of the cached rows, numbers per row) of each file in a folder of
    strategy.feature_cache."""
    for path in sorted(pathlib.Path(cache).glob("*.safetensors")):
        content = path.read_bytes()
        length, = struct.unpack_from("<Q", content)
        entries = [entry for entry in json.loads(content[8:8 + length]).values() if "shape" in entry]
        body = content[8 + length:]
        features, = (entry for entry in entries if entry["dtype"] == "F32")
        known, = (entry for entry in entries if entry["dtype"] == "U8")
        yield body[slice(*features["data_offsets"])], body[slice(*known["data_offsets"])], features["shape"][-1]
