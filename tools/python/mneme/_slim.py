"""Removes parts of torch.export.save's files that a run does not read. Needs no other part of the package."""
import io
import json
import zipfile


def slim(content):
    """The archive without sample inputs (a pickle), stack traces and other notes, which name files and source lines."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(made, "w") as kept:
        for entry in archive.infolist():
            inner = entry.filename.partition("/")[2]
            if inner.startswith(("data/sample_inputs/", ".data/")):
                continue
            value = archive.read(entry)
            if inner.startswith("models/"):
                value = without_notes(value)
            kept.writestr(zipfile.ZipInfo("model/" + inner), value)
    return made.getvalue()


def without_notes(text):
    program = json.loads(text)
    module = program["graph_module"]
    graph = module["graph"]
    for node in graph["nodes"]:
        node["metadata"] = {}
    rows = [spec["user_input"]["arg"].get("as_tensor", {}).get("name") for spec in module["signature"]["input_specs"]
            if "user_input" in spec]
    graph["tensor_values"] = {name: value for name, value in graph["tensor_values"].items() if name in rows}
    graph["sym_int_values"] = {}
    module["module_call_graph"], module["metadata"] = [], {}
    program["guards_code"] = []
    return json.dumps(program, separators=(",", ":")).encode()
