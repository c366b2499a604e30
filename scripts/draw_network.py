from scripts._job import run_job
from vitscope.jobs.figures import DRAW_NETWORK

run_job(DRAW_NETWORK, snakemake)
