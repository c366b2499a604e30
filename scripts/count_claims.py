from scripts._job import run_job
from vitscope.jobs.claims import COUNT_CLAIMS

run_job(COUNT_CLAIMS, snakemake)
