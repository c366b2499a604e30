from scripts._job import run_job
from vitscope.jobs.measures import MEASURE_PASS

run_job(MEASURE_PASS, snakemake)
