from scripts._job import run_job
from vitscope.jobs.predictions import PREDICT

run_job(PREDICT, snakemake)
