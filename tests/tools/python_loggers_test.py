"""Loggers: their output, read with the readers of TensorBoard, MLflow and Weights & Biases."""
import glob
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import python_package  # noqa: E402

python_package.enter()

import mneme  # noqa: E402
from forked_program import completed  # noqa: E402
from python_package import scenario  # noqa: E402


def needs(name):
    """Skips the test if the library is not installed."""
    try:
        return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


def log_records(content):
    """Returns the records of a LevelDB log after a header of 7 bytes. Blocks of 32 KiB hold parts; each has checksum (4
    bytes), length (2) and kind: 1 full, 2 first, 3 middle, 4 last."""
    at, parts = 7, b""
    while at + 7 <= len(content):
        left = 32768 - at % 32768
        if left < 7:
            at += left
            continue
        length, kind = struct.unpack("<HB", content[at + 4:at + 7])
        parts += content[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):
            yield parts
            parts = b""


def wandb_records(folder):
    """Returns (history, configuration, summary) of the only offline run below a folder, in wandb's types."""
    from wandb.proto import wandb_internal_pb2
    path, = glob.glob(os.path.join(folder, "wandb", "offline-run-*", "run-*.wandb"))
    with open(path, "rb") as file:
        content = file.read()
    history, config, summary = [], {}, {}
    for data in log_records(content):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        items = lambda updates: {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in updates}
        if record.WhichOneof("record_type") == "history":
            history.append(items(record.history.item))
        elif record.WhichOneof("record_type") == "config":
            config |= items(record.config.update)
        elif record.WhichOneof("record_type") == "summary":
            summary |= items(record.summary.update)
    return history, config, summary


class Loggers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = cls.scratch.name
        cls.run_done = mneme.run(scenario("fedavg"), out=os.path.join(cls.folder, "run"))
        cls.accuracy = [(record["round"], record["accuracy"]) for record in cls.run_done.records]

    def export(self, *options):
        return completed("export", self.run_done.folder, *options, folder=self.folder)

    def assert_close(self, shown, expected):
        self.assertEqual([step for step, _ in shown], [step for step, _ in expected])
        for (_, ours), (_, theirs) in zip(shown, expected):
            self.assertAlmostEqual(ours, theirs, places=4)

    def test_tensorboard_receives_the_records(self):
        needs("tensorboard")
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        live, after = os.path.join(self.folder, "live"), os.path.join(self.folder, "after")
        logger = mneme.loggers.TensorBoard(live)
        run = mneme.run(scenario("fedavg"), out=os.path.join(self.folder, "watched"), on_evaluation=logger)
        logger.finish(run)
        self.assertEqual(self.export("--tensorboard", after).returncode, 0)
        for folder in (live, after):
            events = EventAccumulator(folder).Reload()
            self.assert_close([(event.step, event.value) for event in events.Scalars("accuracy")], self.accuracy)
            self.assertIn("accuracy_per_task/1", events.Tags()["scalars"])
            self.assertTrue(events.Tags()["tensors"])

    def test_mlflow_receives_the_records(self):
        mlflow = needs("mlflow")
        store = os.path.join(self.folder, "mlruns")
        done = self.export("--mlflow", store)
        self.assertEqual(done.returncode, 0, done.stderr)
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
        client = mlflow.MlflowClient(tracking_uri="file:" + store)
        experiment = client.get_experiment_by_name("mneme")
        told, = client.search_runs([experiment.experiment_id])
        self.assertEqual(told.info.status, "FINISHED")
        self.assertEqual(told.data.tags["run_digest"], self.run_done.digest)
        self.assertEqual(told.data.params["strategy.name"], "fedavg")
        self.assert_close([(metric.step, metric.value)
                           for metric in client.get_metric_history(told.info.run_id, "accuracy")], self.accuracy)

    def test_weights_and_biases_receives_the_records_offline(self):
        needs("wandb")
        done = self.export("--wandb", "project")
        self.assertEqual(done.returncode, 0, done.stderr)
        history, config, summary = wandb_records(self.folder)
        self.assert_close([(int(row["_step"]), row["accuracy"]) for row in history], self.accuracy)
        self.assertEqual(config["strategy.name"], "fedavg")
        self.assertEqual(summary["run_digest"], self.run_done.digest)

    def test_invalid_export_arguments_are_refused(self):
        self.assertEqual(self.export().returncode, 2)
        said = subprocess.run([sys.executable, "-m", "mneme", "export", self.folder, "--tensorboard", "x"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(said.returncode, 2)
        self.assertIn("no run", said.stderr)


if __name__ == "__main__":
    python_package.run_tests()
