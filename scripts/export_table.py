from scripts._job import run_job
from vitscope.jobs.tables import EXPORT_TABLE

run_job(EXPORT_TABLE, snakemake)
