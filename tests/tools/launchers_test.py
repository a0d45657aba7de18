"""Runs that a launcher starts once per rank: Slurm, MPI, torchrun, or environment variables set by hand."""
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from launcher_programs import SlurmCluster, mpirun, plain_environment, torch_python  # noqa: E402
from made_data import write_data  # noqa: E402
from node_processes import NodesCase, free_port, words  # noqa: E402
from program import PROGRAM, ROOT, mneme, needs_nodes, needs_pages, run_tests  # noqa: E402

setUpModule = needs_nodes

METHODS = ("fedavg", "fedasync", "stsa", "lga")  # STSA and LGA reject asynchronous rounds
LONG = ["rounds.per_task=200"]
KEPT = ["checkpoint.force=true", "checkpoint.every=50"]  # each forced checkpoint takes 40 ms; no digest depends on them
SECRET = "0123456789abcdef0123456789abcdef"


class Digests(NodesCase):
    """Three ranks of each launcher. Each launches FedAvg, one all methods; launchers_slow_test.py has the others."""

    methods = ("fedavg",)

    def launched(self, command, scenario, *options, environment=None):
        """Returns summary.json of a run that `command` starts in several processes."""
        folder = self.out()
        line = [*command, PROGRAM, "run", scenario, "--distributed", "--quiet", "--threads", "1", "--out", folder]
        done = subprocess.run([*line, *options], cwd=ROOT, env=environment or plain_environment(), capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return self.read(folder)

    def compare_with_one_process(self, command, environment=None, methods=None):
        for name in methods or self.methods:
            scenario = f"scenarios/smoke/{name}.toml"
            alone = self.digest(scenario, "--threads", "1")
            found = self.launched(command, scenario, environment=environment)
            self.assertEqual(found["run_digest"], alone, name)
            self.assertEqual(len(found["nodes"]), 2)
            self.assertEqual(sum(node["disconnects"] for node in found["nodes"]), 0)
            self.assertGreater(sum(node["client_rounds"] for node in found["nodes"]), 0)

    def test_torchrun_gives_the_digest_of_one_process(self):
        python = torch_python()
        if not python:
            self.skipTest("no Python with torch.distributed.run")
        self.compare_with_one_process([python, "-m", "torch.distributed.run", "--no-python", "--standalone",
                                       "--nproc-per-node", "3"])

    def test_open_mpi_gives_the_digest_of_one_process(self):
        program = mpirun("Open MPI", "mpirun.openmpi", "mpirun")
        if not program:
            self.skipTest("Open MPI is not installed (tools/bootstrap --launchers)")
        self.compare_with_one_process([program, "-n", "3", "--oversubscribe", "--bind-to", "none"],
                                      plain_environment(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"),
                                      METHODS)

    def test_mpich_gives_the_digest_of_one_process(self):
        program = mpirun("HYDRA", "mpirun.mpich", "mpirun")
        if not program:
            self.skipTest("MPICH is not installed (tools/bootstrap --launchers)")
        self.compare_with_one_process([program, "-n", "3"])


class Launchers(NodesCase):
    def setUp(self):
        super().setUp()
        self.port = free_port()

    def test_a_killed_rank_changes_no_digest(self):
        scenario = "scenarios/smoke/fedprox.toml"
        alone = self.digest(scenario, "--threads", "1", *words(LONG))
        folder = self.out()
        first, killed, _ = self.ranks(3, scenario, "--out", folder, *words(LONG))
        while first.poll() is None and not os.path.exists(os.path.join(folder, "metrics.jsonl")):
            time.sleep(0.01)
        killed.kill()
        found, said = self.ended(first, folder)
        self.assertEqual(found["run_digest"], alone, said)
        self.assertEqual(sum(node["disconnects"] for node in found["nodes"]), 1, said)

    def test_an_interrupted_run_resumes_distributed(self):
        scenario = "scenarios/smoke/fedprox.toml"
        alone = self.digest(scenario, "--threads", "1", *words(LONG))
        process, folder = self.begun(scenario, "--threads", "1", *words([*LONG, *KEPT]))
        process.terminate()
        process.communicate(timeout=60)
        first, second = self.ranks(2, folder, command="resume")
        found, said = self.ended(first, folder)
        self.assertEqual(found["run_digest"], alone, said)
        self.assertEqual(second.wait(timeout=60), 0)

    def test_ranks_connect_to_rank_0_over_ipv6(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError:
            self.skipTest("this machine has no IPv6")
        folder, scenario = self.out(), "scenarios/smoke/fedavg.toml"
        first, second = self.ranks(2, scenario, "--out", folder, LOCAL_WORLD_SIZE="1", MASTER_ADDR="::1",
                                   MNEME_SECRET="0123456789abcdef")
        found, said = self.ended(first, folder)
        self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "1"))
        self.assertTrue(found["nodes"][0]["address"].startswith("[::1]:"), said)
        self.assertEqual(second.wait(timeout=60), 0)

    def test_ranks_of_a_machine_serve_metrics_at_the_port_plus_their_local_rank(self):
        needs_pages()
        port = free_port()
        for rank, process in enumerate(self.ranks(2, "scenarios/smoke/fedavg.toml", "--out", self.out(), "--metrics",
                                                  f"127.0.0.1:{port}")):
            line = next(line for line in process.stdout if "metrics at" in line)
            self.assertEqual(line, f"metrics at http://127.0.0.1:{port + rank}/metrics\n")

    def test_a_missing_rank_ends_the_run_with_an_error(self):
        done = mneme("run", "scenarios/smoke/fedavg.toml", "--distributed", "--out", self.out(), "--set",
                     "worker.join_timeout=\"1 s\"",
                     environment=plain_environment(RANK="0", WORLD_SIZE="3", LOCAL_WORLD_SIZE="3",
                                                   MASTER_PORT=str(self.port)))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(f"0 nodes with 0 workers have joined at 127.0.0.1:{self.port} within 1 s (worker.join_timeout), "
                      "and 2 nodes are needed", done.stderr)

    def ends(self, processes, code):
        """Returns the outputs of ranks, which must all end with this exit code."""
        said = [process.communicate(timeout=60)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [code] * len(processes), said)
        return said

    def rank_0_after(self, ranks, *options, **how):
        """Starts rank 0 once the others try to connect. Returns it, and the others."""
        for rank in ranks.values():
            next(line for line in rank.stdout if "waits for the run" in line)
        return self.rank(0, 1 + len(ranks), *options, **how), list(ranks.values())

    def test_other_ranks_end_with_the_error_of_rank_0_before_the_run(self):
        """Rank 0 finds the first error before it listens, and the second while it loads the run."""
        here, there = (os.path.join(self.scratch.name, name) for name in ("here", "there"))
        shutil.copytree(os.path.join(ROOT, "scenarios", "smoke"), here)  # any folder with files
        write_data(there, "usps")
        for settings, cause in (([], "already exists, and a run never overwrites another"),
                                (words(["data.name=\"usps\""]), "usps")):
            out = [] if settings else ["--out", here]
            ranks = {rank: self.rank(rank, 3, "scenarios/smoke/fedavg.toml", *settings, *out,
                                     MNEME_DATA=there if rank else here) for rank in (1, 2)}
            first, others = self.rank_0_after(ranks, "scenarios/smoke/fedavg.toml", *settings, *out, MNEME_DATA=here)
            for said in (*self.ends([first], 2), *self.ends(others, 2)):
                self.assertIn(cause, said)
            self.port = free_port()

    def test_other_ranks_end_if_there_is_nothing_to_resume(self):
        folder = self.out()
        self.assertEqual(mneme("run", "scenarios/smoke/fedavg.toml", "--quiet", "--out", folder).returncode, 0)
        ranks = {rank: self.rank(rank, 3, folder, command="resume") for rank in (1, 2)}
        first, others = self.rank_0_after(ranks, folder, command="resume")
        self.assertIn("nothing to resume", self.ends([first], 0)[0])
        for said in self.ends(others, 0):
            self.assertIn("the run is over", said)

    def test_other_ranks_end_with_the_failure_of_the_run(self):
        first, *others = self.ranks(3, "scenarios/smoke/fedavg.toml", "--out", self.out(),
                                    *words(["training.learning_rate=1e12"]))
        self.ends([first], 1)
        for said in self.ends(others, 1):
            self.assertIn("error: the run has failed: ", said)

    def test_other_ranks_end_with_an_interrupted_run(self):
        folder = self.out()
        first, *others = self.ranks(3, "scenarios/smoke/fedprox.toml", "--out", folder, *words(LONG))
        while first.poll() is None and not os.path.exists(os.path.join(folder, "metrics.jsonl")):
            time.sleep(0.01)
        first.terminate()
        self.ends([first], 130)
        for said in self.ends(others, 130):
            self.assertIn("the run was interrupted", said)

    def killed_rank_0(self, settings, folder):
        """Starts three ranks and kills rank 0 once it has written a checkpoint. Returns the others."""
        options = words([*LONG, *KEPT, *settings])
        first, *others = self.ranks(3, "scenarios/smoke/fedprox.toml", "--out", folder, *options)
        while first.poll() is None and not glob.glob(os.path.join(folder, "checkpoint", "*.checkpoint")):
            time.sleep(0.01)
        first.kill()
        first.wait()
        return others

    def test_other_ranks_end_when_a_killed_rank_0_does_not_come_back(self):
        for said in self.ends(self.killed_rank_0(["worker.node_timeout=\"200 ms\""], self.out()), 1):
            self.assertIn(f"error: lost rank 0 at 127.0.0.1:{self.port}, and it has not come back within 20 times "
                          "worker.node_timeout", said)

    def test_other_ranks_continue_with_a_restarted_rank_0(self):
        folder = self.out()
        others = self.killed_rank_0([], folder)
        found, said = self.ended(self.rank(0, 3, folder, command="resume"), folder)
        self.assertIn("continues after round ", said)
        alone = self.digest("scenarios/smoke/fedprox.toml", "--threads", "1", *words(LONG))
        self.assertEqual(found["run_digest"], alone, said)
        self.ends(others, 0)

    def test_ranks_of_another_build_or_secret_are_rejected_and_the_run_does_not_begin(self):
        other, folder = os.path.join(self.scratch.name, "mneme"), self.out()
        shutil.copy(PROGRAM, other)
        with open(other, "ab") as file:
            file.write(b"\0")
        scenario, options = "scenarios/smoke/fedavg.toml", ["--out", folder]
        run = self.rank(0, 3, scenario, *options, MNEME_SECRET=SECRET)
        rank = self.rank(1, 3, scenario, *options, MNEME_SECRET=SECRET[::-1])
        said, _ = rank.communicate(timeout=300)
        self.assertEqual(rank.returncode, 2, said)
        self.assertIn("does not have the same secret (MNEME_SECRET or --secret)", said)
        rank = self.rank(2, 3, scenario, *options, MNEME_SECRET=SECRET, program=other)
        said, _ = rank.communicate(timeout=300)
        self.assertEqual(rank.returncode, 2, said)
        self.assertIn("rejects this node, because it has a different build of mneme: ", said)
        said, _ = run.communicate(timeout=300)
        self.assertEqual(run.returncode, 2, said)
        for cause in ("is rejected: it does not have the same secret", "error: has a different build of mneme: "):
            self.assertIn(cause, said)
        self.assertFalse(os.path.exists(folder))

    def test_ranks_of_another_run_are_rejected_and_this_run_continues(self):
        """Two launchers use one port. Their job ids differ, or they have none and two processes have one rank."""
        scenario = "scenarios/smoke/fedavg.toml"
        for ours, theirs, cause in (
                ({"TORCHELASTIC_RUN_ID": "a"}, {"TORCHELASTIC_RUN_ID": "b"},
                 "is rank 1 of another run: torchrun b, and this run is torchrun a; start one of the runs with another "
                 "MASTER_PORT"),
                ({}, {}, "is a second rank 1, so it belongs to another run; end the processes of that run, or start")):
            folder = self.out()
            first, second = (self.rank(rank, 3, scenario, "--out", folder, **ours) for rank in (0, 1))
            address = next(re.search(r"joined the run at (\S+)", line) for line in second.stdout if "joined" in line)[1]
            for rank, reason in ((1, "rejects this node, because it " + cause), (0, "Address already in use")):
                self.assertIn(reason, self.ends([self.rank(rank, 3, scenario, **theirs)], 2)[0])
            permanent = self.node(address, "--threads", "1")  # it may join any run
            permanent.wait_for("has joined the run")
            third = self.rank(2, 3, scenario, **ours)
            found, said = self.ended(first, folder)
            self.assertEqual(found["run_digest"], self.digest(scenario, "--threads", "1"))
            self.assertIn("is rejected: it " + cause, said)
            self.ends([second, third], 0)
            self.assertEqual(permanent.process.wait(timeout=60), 0, permanent.text())

    def test_ranks_are_rejected_by_a_run_that_no_launcher_has_started(self):
        address = f"127.0.0.1:{self.port}"
        run = self.started(self.out(), "scenarios/smoke/fedavg.toml", "--accept", address, "--workers-min", "1")
        rank = self.rank(1, 2, "scenarios/smoke/fedavg.toml")
        self.assertIn("is rank 1 of another run, since no launcher has started this run", self.ends([rank], 2)[0])
        self.node(address, "--threads", "1")
        self.assertEqual(run.wait(timeout=60), 0)

    def test_a_run_resumes_after_a_timeout_while_waiting_for_ranks(self):
        scenario = "scenarios/smoke/fedprox.toml"
        alone = self.digest(scenario, "--threads", "1", *words(LONG))
        process, folder = self.begun(scenario, "--threads", "1", *words([*LONG, *KEPT, "worker.join_timeout=\"1 s\""]))
        process.terminate()
        process.communicate(timeout=60)
        waiting = self.rank(0, 3, folder, command="resume")
        said, _ = waiting.communicate(timeout=60)
        self.assertEqual(waiting.returncode, 1, said)
        self.assertIn("and 2 nodes are needed", said)
        self.assertEqual(mneme("resume", folder, "--quiet").returncode, 0)
        self.assertEqual(self.read(folder)["run_digest"], alone)

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


class Slurm(NodesCase):
    """A cluster of Slurm with three nodes on this machine."""

    @classmethod
    def setUpClass(cls):
        cls.slurm = SlurmCluster(free_port(4))
        cls.addClassCleanup(cls.slurm.close)
        if cls.slurm.reason:
            raise unittest.SkipTest(cls.slurm.reason)

    methods, launched = ("fedavg",), Digests.launched
    compare_with_one_process = Digests.compare_with_one_process

    def test_tasks_of_one_machine_give_the_digest_of_one_process(self):
        self.compare_with_one_process(["srun", "-N", "1", "-n", "3"], plain_environment(**self.slurm.environment))

    def test_tasks_of_three_machines_need_a_secret_and_give_the_digest_of_one_process(self):
        around = plain_environment(**self.slurm.environment, MASTER_ADDR="127.0.0.1")
        command = ["srun", "-N", "3", "-n", "3"]
        refused = subprocess.run([*command, PROGRAM, "run", "scenarios/smoke/fedavg.toml", "--distributed", "--out",
                                  self.out()], cwd=ROOT, env=around, capture_output=True, text=True, check=False)
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("write export MNEME_SECRET=$(openssl rand -hex 32) before the line of Slurm", refused.stderr)
        self.compare_with_one_process(command, {**around, "MNEME_SECRET": SECRET})

    def test_the_batch_script_runs_a_scenario_and_resumes_a_run(self):
        process, interrupted = self.begun("scenarios/smoke/fedprox.toml", "--threads", "1", *words([*LONG, *KEPT]))
        process.terminate()
        process.communicate(timeout=60)
        folder = self.out()
        self.submit(os.path.join(ROOT, "scenarios", "smoke", "fedavg.toml"), "--out", folder)
        self.submit(interrupted)
        self.assertEqual(self.read(folder)["run_digest"], self.digest("scenarios/smoke/fedavg.toml", "--threads", "1"))
        self.assertEqual(self.read(interrupted)["run_digest"],
                         self.digest("scenarios/smoke/fedprox.toml", "--threads", "1", *words(LONG)))

    def submit(self, *arguments):
        home, log = (os.path.join(self.scratch.name, name) for name in ("home", "log"))
        if not os.path.exists(home):
            os.makedirs(os.path.join(home, "bin"))
            os.symlink(PROGRAM, os.path.join(home, "bin", "mneme"))
        around = plain_environment(**self.slurm.environment, MASTER_ADDR="127.0.0.1", MNEME_HOME=home)
        script = os.path.join(ROOT, "tools", "packaging", "slurm.sh")
        code, said = self.slurm.submit(log, "--nodes=3", script, *arguments, environment=around)
        self.assertEqual(code, "0:0", said)


if __name__ == "__main__":
    run_tests()
