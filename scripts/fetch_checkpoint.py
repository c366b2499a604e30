from scripts._job import run_job
from vitscope.jobs.networks import FETCH_CHECKPOINT

run_job(FETCH_CHECKPOINT, snakemake)
