from scripts._job import run_job
from vitscope.jobs.networks import CONVERT_CHECKPOINT

run_job(CONVERT_CHECKPOINT, snakemake)
