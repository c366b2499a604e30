"""Copy the weights after an epoch of a training to where models look for their snapshots."""

from pathlib import Path

from scripts._job import job
from vitscope.files.whole import copy_file

with job(snakemake):
    target = Path(snakemake.output.weights)
    copy_file(Path(snakemake.input.epochs) / target.name, target)
