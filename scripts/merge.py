from scripts._job import run_job
from vitscope.jobs.measures import MERGE

run_job(MERGE, snakemake)
