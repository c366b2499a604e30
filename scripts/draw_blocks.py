from scripts._job import run_job
from vitscope.jobs.figures import DRAW_BLOCKS

run_job(DRAW_BLOCKS, snakemake)
