from scripts._job import run_job
from vitscope.jobs.provenance import RECORD_RUN

run_job(RECORD_RUN, snakemake)
