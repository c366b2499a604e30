from scripts._job import run_job
from vitscope.jobs.data import FETCH_ARCHIVE

run_job(FETCH_ARCHIVE, snakemake)
