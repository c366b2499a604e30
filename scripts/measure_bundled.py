from scripts._job import run_job
from vitscope.jobs.buildups import MEASURE_BUNDLED

run_job(MEASURE_BUNDLED, snakemake)
