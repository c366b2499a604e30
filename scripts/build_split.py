"""Write one file with the images of a split, resized and in order."""

from scripts._job import run_job
from vitscope.jobs.data import BUILD_SPLIT

run_job(BUILD_SPLIT, snakemake)
