"""The Kubernetes manifests: valid by the published schemas, and the scripts in them run mneme as ranks."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launcher_programs import plain_environment  # noqa: E402
from node_processes import NodesCase, free_port  # noqa: E402
from program import PROGRAM, ROOT, needs_nodes, run_tests  # noqa: E402

FOLDER = os.path.join(ROOT, "tools", "packaging", "kubernetes")
CHART = os.path.join(FOLDER, "chart")
VERSIONS = ("1.31", "1.37")
SECRETS = {"secret": {"name": "ours"}, "tls": {"secret": "keys"}, "runs": {"claim": "runs"},
           "data": {"claim": "data"}, "metrics": {"port": 9100, "token": "metrics"}, "ranks": 8}
NO_PACKAGE = "no Python with kubernetes-validate (tools/bootstrap --launchers)"
NO_HELM = "neither helm nor helm-python-sdk is installed"


def enter():
    """Restarts in the Python of tools/bootstrap, which has the packages of these tests."""
    python = os.environ.get("MNEME_PYTHON", "")
    if os.path.exists(python) and os.path.abspath(python) != os.path.abspath(sys.executable):
        sys.exit(subprocess.run([python, *sys.argv], check=False).returncode)


def rendered(values, folder=CHART):
    """Returns the chart's manifests with these values, by `helm template` or Helm's library; None without either."""
    import yaml
    if shutil.which("helm"):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            yaml.safe_dump(values, file)
            file.flush()
            text = subprocess.run(["helm", "template", "mneme", folder, "--values", file.name], capture_output=True,
                                  text=True, check=True).stdout
    else:
        try:
            import helm_python
        except ImportError:
            return None
        with helm_python.Chart.load(folder) as chart:
            text = "\n---\n".join(chart.render(values, name="mneme").values())
    return [found for found in yaml.safe_load_all(text) if found]


class Kubernetes(NodesCase):
    def validate(self, manifests):
        try:
            import kubernetes_validate
        except ImportError:
            self.skipTest(NO_PACKAGE)
        for manifest in manifests:
            for version in VERSIONS:
                kubernetes_validate.validate(manifest, version, strict=True)

    def chart(self, **values):
        manifests = rendered(values)
        if manifests is None:
            self.skipTest(NO_HELM)
        return {manifest["kind"]: manifest for manifest in manifests}

    def plain(self):
        try:
            import yaml
        except ImportError:
            self.skipTest(NO_PACKAGE)
        with open(os.path.join(FOLDER, "job.yaml"), encoding="utf-8") as file:
            return {manifest["kind"]: manifest for manifest in yaml.safe_load_all(file)}

    def command_of(self, job, folder="", has_run=False):
        """Returns the arguments and the environment with which the script of the pod starts mneme."""
        pod, = job["spec"]["template"]["spec"]["containers"]
        with tempfile.TemporaryDirectory() as scratch:
            program = os.path.join(scratch, "mneme")
            with open(program, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
            os.chmod(program, 0o755)
            runs = os.path.join(scratch, "runs")
            os.makedirs(os.path.join(runs, folder))
            if has_run:
                open(os.path.join(runs, folder, "scenario.toml"), "w", encoding="utf-8").close()
            script = pod["args"][0].replace("/runs/", runs + "/")
            done = subprocess.run([*pod["command"], script], capture_output=True, text=True, check=True,
                                  env=plain_environment(PATH=f"{scratch}:{os.environ['PATH']}"))
            return done.stdout.replace(runs, "/runs").splitlines()

    def test_manifests_are_valid_by_the_published_schemas(self):
        manifests = self.plain()
        self.assertEqual(set(manifests), {"Service", "Job"})
        self.validate(manifests.values())

    def test_the_schemas_reject_a_misspelled_key(self):
        job = self.plain()["Job"]
        job["spec"]["completion"] = job["spec"].pop("completions")
        self.validate([])
        import kubernetes_validate
        with self.assertRaises(kubernetes_validate.ValidationError):
            self.validate([job])

    def test_the_job_starts_or_resumes_a_run(self):
        job = self.plain()["Job"]
        self.assertEqual(self.command_of(job, "X"), ["run", "/scenario/X.toml", "--distributed", "--out", "/runs/X"])
        self.assertEqual(self.command_of(job, "X", has_run=True), ["resume", "/runs/X", "--distributed"])

    def test_pods_of_the_job_give_the_digest_of_one_process(self):
        needs_nodes()
        pod, = self.plain()["Job"]["spec"]["template"]["spec"]["containers"]
        os.symlink(PROGRAM, os.path.join(self.scratch.name, "mneme"))
        script = pod["args"][0].replace("/runs/", self.scratch.name + "/").replace(
            "/scenario/X.toml", os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"))
        shared = plain_environment(**{one["name"]: one.get("value", "0123456789abcdef") for one in pod["env"]},
                                   MASTER_PORT=str(free_port()), PATH=f"{self.scratch.name}:{os.environ['PATH']}")
        shared.update(MASTER_ADDR="127.0.0.1")  # the name of pod 0 has no meaning here
        pods = [subprocess.Popen([*pod["command"], script], env={**shared, "JOB_COMPLETION_INDEX": str(index)},
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                for index in range(int(shared["WORLD_SIZE"]))]
        for process in pods:
            self.addCleanup(self.let_go, process)
        found, _ = self.ended(pods[0], os.path.join(self.scratch.name, "X"))
        self.assertEqual(found["run_digest"], self.digest("scenarios/smoke/fedavg.toml"))
        self.assertEqual(len(found["nodes"]), 3)
        self.assertEqual([process.wait(timeout=300) for process in pods[1:]], [0] * 3)

    def test_the_chart_renders_with_defaults(self):
        manifests = self.chart()
        self.assertEqual(set(manifests), {"Service", "Secret", "Job"})
        self.assertGreaterEqual(len(manifests["Secret"]["stringData"]["secret"]), 16)
        self.assertEqual(self.command_of(manifests["Job"], "mneme"),
                         ["run", "/opt/mneme/share/mneme/scenarios/quickstart.toml", "--out", "/runs/mneme",
                          "--distributed"])
        self.validate(manifests.values())

    def test_an_upgrade_keeps_the_secret_of_the_cluster(self):
        """Without a cluster, lookup() finds nothing, so a copy of the chart contains its result."""
        folder = os.path.join(self.scratch.name, "chart")
        shutil.copytree(CHART, folder)
        path = os.path.join(folder, "templates", "around.yaml")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        search = 'lookup "v1" "Secret" .Release.Namespace $name'
        self.assertEqual(text.count(search), 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace(search, 'dict "data" (dict "secret" "b2xk")'))
        manifests = rendered({}, folder)
        if manifests is None:
            self.skipTest(NO_HELM)
        secret, = (manifest for manifest in manifests if manifest["kind"] == "Secret")
        self.assertEqual((secret["data"], secret.get("stringData")), ({"secret": "b2xk"}, None))
        self.validate(manifests)

    def test_the_chart_renders_with_certificates_and_all_values(self):
        manifests = self.chart(**SECRETS, scenario="seed = 1\n[data]\nname = \"digits\"\n",
                               options=["--set", "title=\"it's\""])
        self.assertEqual(set(manifests), {"Service", "ConfigMap", "Job"})
        self.assertEqual(manifests["ConfigMap"]["data"]["scenario.toml"],
                         "seed = 1\n[data]\nname = \"digits\"\n")
        joined = ["--distributed", "--cert", "/etc/mneme/node.pem", "--key", "/etc/mneme/node.key", "--ca",
                  "/etc/mneme/ca.pem", "--metrics", "0.0.0.0:9100"]
        job = manifests["Job"]
        self.assertEqual(self.command_of(job, "mneme"), ["run", "/scenario/scenario.toml", "--out", "/runs/mneme",
                                                         *joined, "--set", "title=\"it's\""])
        self.assertEqual(self.command_of(job, "mneme", has_run=True), ["resume", "/runs/mneme", *joined])
        pod, = job["spec"]["template"]["spec"]["containers"]
        self.assertEqual({one["name"] for one in pod["env"]},
                         {"WORLD_SIZE", "MASTER_ADDR", "MNEME_DATA", "MNEME_METRICS_TOKEN"})
        mounted = {mount["name"] for mount in pod["volumeMounts"]}
        self.assertEqual(mounted, {volume["name"] for volume in job["spec"]["template"]["spec"]["volumes"]})
        self.validate(manifests.values())

    def test_metrics_of_the_chart_need_a_token(self):
        self.chart()  # skips without Helm
        with self.assertRaises(Exception) as caught:
            self.chart(metrics={"port": 9100})
        said = getattr(caught.exception, "stderr", None) or str(caught.exception)
        self.assertIn("metrics.token: the name of a Secret is needed", said)


class Services(unittest.TestCase):
    def test_the_systemd_unit_is_valid(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        with open(os.path.join(ROOT, "tools", "packaging", "mneme-node.service"), encoding="utf-8") as file:
            unit = file.read()
        with tempfile.TemporaryDirectory() as scratch:
            path = os.path.join(scratch, "mneme-node.service")
            with open(path, "w", encoding="utf-8") as file:  # the program is not installed where the unit expects it
                file.write(unit.replace("/usr/bin/mneme ", "/bin/true "))
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True,
                                  check=False)
        of_unit = [line for line in done.stderr.splitlines() if "mneme-node" in line]
        self.assertEqual(of_unit, [])


if __name__ == "__main__":
    enter()
    run_tests()
