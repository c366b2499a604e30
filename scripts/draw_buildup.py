from scripts._job import run_job
from vitscope.jobs.buildups import DRAW_BUILDUP

run_job(DRAW_BUILDUP, snakemake)
