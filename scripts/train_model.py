from scripts._job import run_job
from vitscope.jobs.training import TRAIN_MODEL

run_job(TRAIN_MODEL, snakemake)
