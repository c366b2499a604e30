from scripts._job import run_job
from vitscope.jobs.data import CORRUPT_IMAGES

run_job(CORRUPT_IMAGES, snakemake)
