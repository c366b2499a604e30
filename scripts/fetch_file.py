from scripts._job import run_job
from vitscope.jobs.data import FETCH_FILE

run_job(FETCH_FILE, snakemake)
