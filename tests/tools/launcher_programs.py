"""Launchers for tests: those that are installed, and a Slurm cluster on this machine."""
import glob
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

LAUNCHER = re.compile(r"RANK|WORLD_SIZE|MASTER_|TORCHELASTIC|SLURM_|OMPI_|PMI|MPI_|JOB_COMPLETION|MNEME_SECRET")


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


def mpirun(library, *names):
    """The first of these programs that belongs to this MPI library; None if there is none."""
    for name in names:
        if shutil.which(name):
            version = subprocess.run([name, "--version"], capture_output=True, text=True, check=False).stdout
            if re.search(library, version):
                return name
    return None


def daemon_program(name):
    """Returns the path of a program that may be in sbin; None if it is not installed."""
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]))


CONFIGURATION = """
ClusterName=mneme
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
MpiDefault=none
KillWait=5
SlurmdParameters=config_overrides
NodeName=n[1-3] NodeHostname={host} NodeAddr=127.0.0.1 Port={first}-{last} CPUs=3
PartitionName=all Nodes=ALL Default=YES State=UP
"""


class SlurmCluster:
    """A Slurm cluster of three nodes on this machine, with its own key and state. `reason`: why it does not run."""

    def __init__(self, ports):
        """ports: four consecutive free ports."""
        self.processes, self.folder = [], tempfile.mkdtemp(prefix="mneme-slurm-", dir="/tmp")  # socket paths are short
        self.environment = {"SLURM_CONF": os.path.join(self.folder, "slurm.conf")}
        self.reason = self.missing_program() or self.start(ports)

    @staticmethod
    def missing_program():
        for name in ("munged", "slurmctld", "slurmd", "srun"):
            if not daemon_program(name):
                return f"Slurm: {name} is not installed (tools/bootstrap --launchers)"
        return ""

    def start(self, ports):
        with open(os.path.join(self.folder, "munge.key"), "wb",
                  opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(os.urandom(1024))
        os.mkdir(os.path.join(self.folder, "state"))
        os.chmod(self.folder, 0o755)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        with open(self.environment["SLURM_CONF"], "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(host=socket.gethostname().split(".")[0], user=user, folder=self.folder,
                                            port=ports, first=ports + 1, last=ports + 3))
        here = {name: os.path.join(self.folder, f"munge.{name}") for name in ("key", "sock", "pid", "log", "seed")}
        self.daemon("munged", "--force", "--foreground", f"--key-file={here['key']}", f"--socket={here['sock']}",
                    f"--pid-file={here['pid']}", f"--log-file={here['log']}", f"--seed-file={here['seed']}")
        if not self.waits_for(lambda: os.path.exists(here["sock"])):
            return self.failure("munged")
        self.daemon("slurmctld", "-D", "-f", self.environment["SLURM_CONF"])
        for name in ("n1", "n2", "n3"):
            self.daemon("slurmd", "-D", "-N", name, "-f", self.environment["SLURM_CONF"], log=f"slurmd-{name}")
        return "" if self.waits_for(self.is_idle) else self.failure("slurmctld", "slurmd-n1")

    def daemon(self, program, *options, log=""):
        with open(os.path.join(self.folder, (log or program) + ".out"), "w", encoding="utf-8") as out:
            self.processes.append(subprocess.Popen([daemon_program(program), *options], stdout=out,
                                                   stderr=subprocess.STDOUT, env=plain_environment()))

    def is_idle(self):
        found = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%T"], capture_output=True, text=True,
                               env=plain_environment(**self.environment), check=False)
        return found.stdout.split() == ["idle"] * 3

    def submit(self, log, *arguments, environment):
        """Runs a batch job and waits at most 10 min for its end. Returns its exit code, as in 0:0, and its output."""
        done = subprocess.run(["sbatch", "--parsable", f"--output={log}", *arguments], capture_output=True, text=True,
                              env=environment, check=False)
        if done.returncode:
            return str(done.returncode), done.stderr
        job = done.stdout.strip()
        shown, until = "", time.monotonic() + 600
        while not re.search(r"JobState=(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL)", shown):
            if time.monotonic() > until:
                subprocess.run(["scancel", job], env=environment, check=False)
                raise AssertionError(f"job {job} has not ended within 10 minutes: {shown}")
            time.sleep(0.1)
            shown = subprocess.run(["scontrol", "show", "job", job], capture_output=True, text=True, env=environment,
                                   check=True).stdout
        with open(log, encoding="utf-8") as file:
            return re.search(r"ExitCode=(\S+)", shown).group(1), file.read()

    def waits_for(self, condition):
        until = time.monotonic() + 60
        while not condition():
            if time.monotonic() > until or any(process.poll() is not None for process in self.processes):
                return False
            time.sleep(0.05)
        return True

    def failure(self, *names):
        """Returns the reason why daemons do not run, from the ends of their logs."""
        ends = []
        for name in names:
            with open(os.path.join(self.folder, name + ".out"), encoding="utf-8", errors="replace") as file:
                ends += [line.strip() for line in file.readlines()[-1:]]
        return "Slurm does not start here: " + "; ".join(ends)

    def close(self):
        for process in reversed(self.processes):  # munged ends last
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
