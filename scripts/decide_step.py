from scripts._job import run_job
from vitscope.jobs.buildups import DECIDE_STEP

run_job(DECIDE_STEP, snakemake)
