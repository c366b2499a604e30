#!/usr/bin/env bash
# Install Debian's packages of Slurm, if this machine lacks them.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch; do
    if ! command -v "$program" >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            slurmctld slurmd slurm-client munge
        exit
    fi
done
