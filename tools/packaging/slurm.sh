#!/bin/bash
# One run over the nodes of a Slurm job (docs/nodes.md):  sbatch slurm.sh X.toml
# mneme is the one of the tarball that lies in a folder all nodes see; keys/ comes from `mneme node --make-keys keys`.
#SBATCH --nodes=4 --ntasks-per-node=1 --exclusive
set -euo pipefail
export PATH="${MNEME_HOME:-$HOME/mneme}/bin:$PATH"
keys=(--cert keys/node.pem --key keys/node.key --ca keys/ca.pem)
srun mneme node --listen 0.0.0.0:7100 "${keys[@]}" &
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed 's/$/:7100/' | paste -sd,)
sleep 10
mneme run "$1" --nodes "$hosts" "${keys[@]}"
scancel --signal=INT "$SLURM_JOB_ID.0"
