"""Do the job that the rule names: the script of every rule."""

from scripts._job import run_job

run_job(snakemake)
