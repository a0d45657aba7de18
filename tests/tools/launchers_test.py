"""Runs that launchers start once per rank: torchrun, mpirun, and their variables set by hand."""
import glob
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from node_processes import NodesCase, free_port, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, run_tests  # noqa: E402

LAUNCHER = re.compile(r"RANK|WORLD_SIZE|MASTER_|TORCHELASTIC|SLURM_|OMPI_|PMI|MPI_|JOB_COMPLETION|MNEME_SECRET")
SCENARIOS = (("fedavg", []), ("fedasync", []), ("stsa", []), ("lga", []))
LONG = ["rounds.per_task=200"]


def plain_environment(**more):
    """The environment without variables of a launcher."""
    return {**{name: value for name, value in os.environ.items() if not LAUNCHER.search(name)}, **more}


def torch_python():
    """A Python that has torch.distributed.run; None if there is none."""
    for python in (os.environ.get("MNEME_PYTHON"),
                   *glob.glob(os.path.expanduser("~/.cache/mneme/python-*-torch*/bin/python")), sys.executable):
        if python and os.path.exists(python):
            found = subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True, check=False)
            if found.returncode == 0:
                return python
    return None


class Launchers(NodesCase):
    def launched(self, command, scenario, *options, environment=None):
        """summary.json of a run that `command` starts in several processes."""
        folder = self.out()
        line = [*command, PROGRAM, "run", scenario, "--distributed", "--quiet", "--threads", "1", "--out", folder]
        done = subprocess.run([*line, *options], cwd=ROOT, env=environment or plain_environment(), capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.read(folder)

    def ranks(self, size, scenario, *options, command="run", **variables):
        """Processes of ranks whose variables are set by hand; rank 0 is the first."""
        processes = []
        for rank in range(size):
            around = plain_environment(RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                                       LOCAL_WORLD_SIZE=str(size), MASTER_PORT=str(self.port), **variables)
            processes.append(subprocess.Popen([PROGRAM, command, scenario, "--distributed", "--threads", "1", *options],
                                              cwd=ROOT, env=around, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                              text=True))
            self.addCleanup(self.let_go, processes[-1])
        return processes

    def setUp(self):
        super().setUp()
        self.port = free_port()

    def compare_with_one_process(self, command, environment=None):
        shared = []  # one node may finish a short run before the other takes a job
        for name, settings in SCENARIOS:
            scenario = f"scenarios/smoke/{name}.toml"
            alone = self.digest(scenario, "--threads", "1", *words(settings))
            found = self.launched(command, scenario, *words(settings), environment=environment)
            self.assertEqual(found["run_digest"], alone, name)
            self.assertEqual(len(found["nodes"]), 2)
            self.assertEqual(sum(node["losses"] for node in found["nodes"]), 0)
            shared.append(all(node["client_rounds"] for node in found["nodes"]))
        self.assertTrue(any(shared))

    def test_torchrun_gives_the_digest_of_one_process(self):
        python = torch_python()
        if not python:
            self.skipTest("no Python with torch.distributed.run")
        self.compare_with_one_process([python, "-m", "torch.distributed.run", "--no-python", "--standalone",
                                       "--nproc-per-node", "3"])

    def test_mpirun_gives_the_digest_of_one_process(self):
        if not shutil.which("mpirun"):
            self.skipTest("mpirun is not installed")
        version = subprocess.run(["mpirun", "--version"], capture_output=True, text=True, check=False).stdout
        is_open_mpi = "Open MPI" in version
        self.compare_with_one_process(["mpirun", "-n", "3", *(["--oversubscribe", "--bind-to", "none"] if is_open_mpi
                                                              else [])],
                                      plain_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))

    def test_ranks_that_are_killed_or_started_late_change_no_digest(self):
        scenario = "scenarios/smoke/fedprox.toml"
        alone = self.digest(scenario, "--threads", "1", *words(LONG))
        folder = self.out()
        first, killed, _ = self.ranks(3, scenario, "--out", folder, *words(LONG))
        while first.poll() is None and not os.path.exists(os.path.join(folder, "metrics.jsonl")):
            pass
        killed.kill()
        found, said = self.ended(first, folder)
        self.assertEqual(found["run_digest"], alone, said)
        self.assertEqual(sum(node["losses"] for node in found["nodes"]), 1, said)

    def test_an_interrupted_run_resumes_distributed(self):
        scenario = "scenarios/smoke/fedprox.toml"
        alone = self.digest(scenario, "--threads", "1", *words(LONG))
        process, folder = self.begun(scenario, "--threads", "1", *words([*LONG, "checkpoint.force=true"]))
        process.terminate()
        process.communicate(timeout=60)
        first, second = self.ranks(2, folder, command="resume")
        found, said = self.ended(first, folder)
        self.assertEqual(found["run_digest"], alone, said)
        self.assertEqual(second.wait(timeout=60), 0)

    def test_a_rank_that_never_comes_ends_the_wait_with_a_sentence(self):
        done = mneme("run", "scenarios/smoke/fedavg.toml", "--distributed", "--out", self.out(), "--set",
                     "worker.join_timeout=\"1 s\"",
                     environment=plain_environment(RANK="0", WORLD_SIZE="3", LOCAL_WORLD_SIZE="3",
                                                   MASTER_PORT=str(self.port)))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f"0 nodes with 0 workers have joined at 127.0.0.1:{self.port} within 1 s (worker.join_timeout), "
                      "and 2 nodes are needed", done.stderr)

    def test_more_than_one_host_needs_a_secret(self):
        done = mneme("run", "scenarios/smoke/fedavg.toml", "--distributed", "--out", self.out(),
                     environment=plain_environment(SLURM_PROCID="0", SLURM_NTASKS="2", SLURM_JOB_NUM_NODES="2",
                                                   SLURM_JOB_NODELIST="node[1-2]", SLURM_JOB_ID="7"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("needs a secret on more than one host; write export MNEME_SECRET=$(openssl rand -hex 32) before "
                      "the line of Slurm", done.stderr)

    def test_variables_that_contradict_each_other_are_named(self):
        done = mneme("run", "scenarios/smoke/fedavg.toml", "--distributed", "--out", self.out(),
                     environment=plain_environment(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", SLURM_PROCID="0",
                                                   SLURM_NTASKS="2"))
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("RANK=1 of WORLD_SIZE=2 and SLURM_PROCID=0 of SLURM_NTASKS=2 contradict each other", done.stderr)


if __name__ == "__main__":
    run_tests()
