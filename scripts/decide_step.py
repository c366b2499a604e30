"""Decide which network a step of a build-up tries, or that the build-up has ended."""

from scripts._job import run_job
from vitscope.jobs.buildups import DECIDE_STEP

run_job(DECIDE_STEP, snakemake)
