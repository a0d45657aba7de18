"""Old names in the Python package: each works, gives the same results and raises a DeprecationWarning."""
import contextlib
import os
import shutil
import sys
import tempfile
import unittest
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from python_package import enter, run_tests, scenario  # noqa: E402

enter()
import mneme  # noqa: E402


@contextlib.contextmanager
def warned():
    """Collects the texts of all DeprecationWarnings."""
    texts = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield texts
    texts += sorted({str(one.message) for one in found if one.category is DeprecationWarning})


class New(mneme.Method):
    """FedAvg."""
    name = "py-new-names"
    single_training_job = True
    hide_task_from_clients = False

    class Server(mneme.AveragingServer):
        def summary_metrics(self):
            return {"seen": len(self.place.seen_classes) + len(self.place.current_classes)}


class Old(mneme.Method):
    """Equal to New, under old names."""
    name = "py-old-names"
    one_job = True
    blind_clients = False

    class Server(mneme.AveragingServer):
        def figures(self):
            return {"seen": len(self.place.opened) + len(self.place.current)}


class Failing(mneme.Method):
    """Fails in the second round."""
    name = "py-corrected"

    def client_round(self, ctx, broadcast):
        trained = yield ctx.train()
        return mneme.Upload(trained.weights[:5 if ctx.place.round else None])


class Corrected(mneme.Method):
    """Does not fail."""
    name = "py-corrected"


class DeprecatedNames(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name

    def ran(self, method, out):
        return mneme.run(scenario(method.name), methods=[method], out=os.path.join(self.folder, out), quiet=True)

    def test_a_method_with_old_names_gives_the_same_run(self):
        with warned() as texts:
            old, new = self.ran(Old, "old"), self.ran(New, "new")
        self.assertEqual(texts, ["Old.blind_clients is deprecated; use hide_task_from_clients",
                                 "Old.one_job is deprecated; use single_training_job",
                                 "RoundInfo.current is deprecated; use current_classes",
                                 "RoundInfo.opened is deprecated; use seen_classes",
                                 "Server.figures is deprecated; use summary_metrics"])
        self.assertEqual((old.summary["seen"], new.summary["seen"]), (15, 15))  # 10 classes in two tasks
        self.assertEqual(old.model().keys(), new.model().keys())
        for name, weights in old.model().items():
            self.assertTrue(weights.equal(new.model()[name]), name)

    def test_both_names_of_an_attribute_are_refused(self):
        both = type("Both", (mneme.Method,), {"name": "py-both", "one_job": True, "single_training_job": True})
        with self.assertRaisesRegex(TypeError, "Both: one_job is the old name of single_training_job; expected only"):
            mneme.validate(scenario("py-both"), methods=[both])
        server = type("Server", (Old.Server,), {"summary_metrics": New.Server.summary_metrics})
        both = type("Both", (mneme.Method,), {"name": "py-both", "Server": server})
        with self.assertRaisesRegex(TypeError, "Server: figures is the old name of summary_metrics; expected only"):
            mneme.validate(scenario("py-both"), methods=[both])
        with warned() as texts:
            self.assertIs(Old.one_job, True)  # an attribute of the user
            self.assertIs(New.one_job, True)
            self.assertIs(New.blind_clients, False)
        self.assertEqual(texts, ["blind_clients is deprecated; use hide_task_from_clients",
                                 "one_job is deprecated; use single_training_job"])

    def test_the_old_class_is_the_new_one(self):
        with warned() as texts:
            self.assertIs(mneme.Place, mneme.RoundInfo)
        self.assertEqual(texts, ["mneme.Place is deprecated; use mneme.RoundInfo"])
        self.assertNotIn("Place", mneme.__all__)
        with self.assertRaisesRegex(AttributeError, "module 'mneme' has no attribute 'Places'"):
            mneme.Places  # noqa: B018

    def test_a_changed_source_is_accepted_under_the_old_name(self):
        folder = os.path.join(self.folder, "changed")
        with self.assertRaises(mneme.RunFailed):
            mneme.run(scenario("py-corrected"), methods=[Failing], out=folder, quiet=True)
        with warned() as texts:
            resumed = mneme.resume(folder, methods=[Corrected], mended=True, quiet=True)
            self.assertEqual(resumed.mended, resumed.source_changes)
        self.assertEqual(texts, ["mended is deprecated; use source_changes",
                                 "mended= is deprecated; use allow_source_change="])
        changes = resumed.source_changes
        self.assertEqual(len(changes), 1)
        shutil.move(os.path.join(folder, "source_changes.jsonl"), os.path.join(folder, "mended.jsonl"))
        self.assertEqual(mneme.load(folder).source_changes, changes)  # the file name of an older version
        with self.assertRaisesRegex(TypeError, "mended is the old name of allow_source_change"):
            mneme.resume(folder, mended=True, allow_source_change=True)

    def test_tls_files_are_accepted_under_the_old_name(self):
        with warned() as texts, self.assertRaisesRegex(ValueError, "expected no accept, secret and tls_files"):
            mneme.run(scenario("fedavg"), keys=["a.pem"], cluster=object(), out=os.path.join(self.folder, "run"))
        self.assertEqual(texts, ["keys= is deprecated; use tls_files="])

    def test_old_scenario_keys_in_a_dict_warn(self):
        found = mneme.validate(scenario("er", tasks={"staying_share": 0.5}), {"strategy.replayed": 4})
        self.assertEqual(found, [
            ("tasks.staying_share", "tasks.staying_share is deprecated; use tasks.keep_task_share"),
            ("strategy.replayed", "strategy.replayed is deprecated; use strategy.replay_rows")])
        with self.assertRaisesRegex(mneme.ScenarioError, "staying_share is the old name of tasks.keep_task_share"):
            mneme.validate(scenario("er", tasks={"staying_share": 0.5, "keep_task_share": 0.5}))


if __name__ == "__main__":
    run_tests()
