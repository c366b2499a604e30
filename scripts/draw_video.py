from scripts._job import run_job
from vitscope.jobs.videos import DRAW_VIDEO

run_job(DRAW_VIDEO, snakemake)
