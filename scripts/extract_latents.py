from scripts._job import run_job
from vitscope.jobs.latents import EXTRACT_LATENTS

run_job(EXTRACT_LATENTS, snakemake)
