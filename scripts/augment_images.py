from scripts._job import run_job
from vitscope.jobs.training import AUGMENT_IMAGES

run_job(AUGMENT_IMAGES, snakemake)
