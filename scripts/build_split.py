from scripts._job import run_job
from vitscope.jobs.data import BUILD_SPLIT

run_job(BUILD_SPLIT, snakemake)
