from scripts._job import run_job
from vitscope.jobs.buildups import TABULATE_BUILDUP

run_job(TABULATE_BUILDUP, snakemake)
