"""Measure the network that a step of a build-up trained."""

from scripts._job import run_job
from vitscope.jobs.buildups import MEASURE_STEP

run_job(MEASURE_STEP, snakemake)
