#!/usr/bin/env bash
# Install what the tests of clusters and storages run, Slurm and rsync, if this machine lacks it (Debian).
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd sbatch rsync; do
    if ! command -v "$program" >/dev/null; then
        apt-get update -qq
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            slurmctld slurmd slurm-client munge rsync
        exit
    fi
done
