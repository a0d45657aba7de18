#!/bin/bash
# One run over the nodes of a Slurm job (docs/nodes.md):  sbatch slurm.sh X.toml [OPTIONS OF mneme run]
# If X.toml is the folder of an interrupted run, the script resumes that run. mneme must be on all nodes, such as the
# unpacked tarball in a shared folder. Slurm passes MNEME_SECRET to all tasks.
#SBATCH --nodes=4 --ntasks-per-node=1 --exclusive
#SBATCH --signal=TERM@120
set -euo pipefail
export PATH="${MNEME_HOME:-$HOME/mneme}/bin:$PATH"
MNEME_SECRET=$(openssl rand -hex 32)
export MNEME_SECRET
command=run
if [ -d "$1" ]; then command=resume; fi
srun --kill-on-bad-exit=1 mneme "$command" "$@" --distributed
