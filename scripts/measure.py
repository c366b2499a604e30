"""Measure a model, its predictions or a part of its latents or loss."""

from scripts._job import run_job
from vitscope.jobs.measures import MEASURE

run_job(MEASURE, snakemake)
