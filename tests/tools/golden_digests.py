"""Run digests in portable arithmetic, one file per scenario in tests/golden/portable. To write them for new scenarios,
or after intended changes of results (smoke/fedavg, quickstart; default: scenarios without a file):

    python3 tests/tools/golden_digests.py --write [NAME...]
"""
import glob
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import ROOT, mneme  # noqa: E402

FOLDER = os.path.join(ROOT, "tests", "golden", "portable")
COMMAND = "python3 tests/tools/golden_digests.py --write"
REFUSAL = "is not part of portable arithmetic"


def names():
    """Scenarios that need a golden digest: "quickstart", and "smoke/NAME" of every smoke scenario."""
    found = glob.glob(os.path.join(ROOT, "scenarios", "smoke", "*.toml"))
    return ["quickstart"] + sorted("smoke/" + os.path.basename(path)[:-len(".toml")] for path in found)


def golden_file(name):
    return os.path.join(FOLDER, name.replace("/", "_") + ".json")


def golden(name):
    """{"run_digest": HEX} or {"refused": OPERATOR}; None if there is no file."""
    if not os.path.exists(golden_file(name)):
        return None
    with open(golden_file(name), encoding="utf-8") as file:
        return {key: value for key, value in json.load(file).items() if key != "scenario"}


def portable_run(name, environment=None, before=(), threads=2):
    """Runs the scenario in portable arithmetic. Returns the result in the form of golden(), and the machine."""
    with tempfile.TemporaryDirectory() as scratch:
        out = os.path.join(scratch, "run")
        done = mneme("run", f"scenarios/{name}.toml", "--set", "worker.arithmetic=portable", "--threads", str(threads),
                     "--out", out, "--quiet", environment={**os.environ, **(environment or {})}, before=before)
        if done.returncode != 0 and REFUSAL in done.stderr:
            return {"refused": done.stderr[done.stderr.index("'aten::"):].split("'")[1]}, {}
        if done.returncode != 0:
            raise RuntimeError(f"{name}: exit code {done.returncode}: {done.stderr}")
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            summary = json.load(file)
        assert summary["arithmetic"] == "portable", summary["arithmetic"]
        return {"run_digest": summary["run_digest"]}, summary["machine"]


def write(chosen):
    os.makedirs(FOLDER, exist_ok=True)
    for name in chosen or [one for one in names() if golden(one) is None]:
        found, _ = portable_run(name)
        with open(golden_file(name), "w", encoding="utf-8") as file:
            file.write(json.dumps({"scenario": f"scenarios/{name}.toml", **found}, indent=2) + "\n")
        print(name, *found.values(), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] != ["--write"]:
        sys.exit(__doc__)
    write(sys.argv[2:])
