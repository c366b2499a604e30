from scripts._job import run_job
from vitscope.jobs.figures import DRAW_FIGURE

run_job(DRAW_FIGURE, snakemake)
