from scripts._job import run_job
from vitscope.jobs.tables import TABULATE

run_job(TABULATE, snakemake)
