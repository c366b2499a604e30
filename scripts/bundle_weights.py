from scripts._job import run_job
from vitscope.jobs.training import BUNDLE_WEIGHTS

run_job(BUNDLE_WEIGHTS, snakemake)
