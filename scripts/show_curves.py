from scripts._job import run_job
from vitscope.jobs.curves import SHOW_CURVES

run_job(SHOW_CURVES, snakemake)
