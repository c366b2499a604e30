from scripts._job import run_job
from vitscope.jobs.figures import DRAW_OVERVIEW

run_job(DRAW_OVERVIEW, snakemake)
