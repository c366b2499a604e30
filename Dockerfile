# The workflow with the versions of envs/constraints.txt; docs/cluster.md says how to build and use it.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        ca-certificates python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /opt/vitscope
COPY . .
# For instance where pip finds the CPU build of PyTorch, which is much smaller.
ARG PIP_OPTIONS=
# vitscope itself is not installed: jobs take it from where their Snakefile is, here or in a clone
# outside of the container, and must not mix the two.
RUN python3 -m venv /opt/venv \
    && /opt/venv/bin/pip install --no-cache-dir $PIP_OPTIONS -c envs/constraints.txt -e '.[workflow,slurm]' \
    && /opt/venv/bin/pip uninstall --yes vitscope \
    && /opt/venv/bin/pip install --no-cache-dir --no-deps packages/snakemake-executor-plugin-prefork
# Any user may run it, who has neither a home nor a name in it.
ENV PATH=/opt/venv/bin:$PATH HOME=/tmp USER=vitscope
