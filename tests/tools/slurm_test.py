"""A sweep as a job array: each task runs one point with the program alone, and a second submission continues."""
import os
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from program import PROGRAM, mneme, run_tests  # noqa: E402


class JobArray(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        os.makedirs(os.path.join(self.folder, "home", "bin"))
        os.symlink(PROGRAM, os.path.join(self.folder, "home", "bin", "mneme"))

    def sweep(self, *arguments):
        runs = os.path.join(self.folder, "runs")
        return mneme("sweep", "scenarios/smoke/fedavg.toml", "--seeds", "1-3", "--out", runs, *arguments)

    def task(self, number):
        """Runs one task of the script as sbatch does."""
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": str(number), "SLURM_CPUS_PER_TASK": "1",
                       "MNEME_HOME": os.path.join(self.folder, "home")}
        done = subprocess.run(["bash", os.path.join(self.folder, "array.sh")], env=environment, capture_output=True,
                              text=True, cwd=self.folder, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_array_tasks_compute_the_points_of_the_sweep(self):
        script = os.path.join(self.folder, "array.sh")
        written = self.sweep("--slurm", script)
        self.assertEqual((written.returncode, written.stdout), (0, f"3 runs: sbatch {script}\n"), written.stderr)
        with open(script, encoding="utf-8") as file:
            self.assertIn("#SBATCH --array=1-3\n", file.read())
        self.assertFalse(os.path.exists(os.path.join(self.folder, "runs")))
        self.task(1)
        self.task(3)
        self.assertEqual([line.split()[0] for line in self.sweep("--dry-run").stdout.splitlines()],
                         ["kept", "new", "kept"])
        self.task(1)  # done, so nothing happens
        self.assertIn("1 runs", self.sweep("--slurm", script).stdout)
        self.task(1)
        self.assertIn("all runs of the sweep are done", self.sweep("--slurm", script).stderr)


if __name__ == "__main__":
    run_tests()
