from scripts._job import run_job
from vitscope.jobs.latents import EXPORT_LATENTS

run_job(EXPORT_LATENTS, snakemake)
