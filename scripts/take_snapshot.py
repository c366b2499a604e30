from scripts._job import run_job
from vitscope.jobs.training import TAKE_SNAPSHOT

run_job(TAKE_SNAPSHOT, snakemake)
