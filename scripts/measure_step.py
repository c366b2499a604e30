from scripts._job import run_job
from vitscope.jobs.buildups import MEASURE_STEP

run_job(MEASURE_STEP, snakemake)
