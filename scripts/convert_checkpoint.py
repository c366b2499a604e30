"""Convert a checkpoint to safetensors, and list the blocks of its network."""

from scripts._job import run_job
from vitscope.jobs.networks import CONVERT_CHECKPOINT

run_job(CONVERT_CHECKPOINT, snakemake)
