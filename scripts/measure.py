from scripts._job import run_job
from vitscope.jobs.measures import MEASURE

run_job(MEASURE, snakemake)
