"""Draw the overview of a study: published and measured points, and verdicts."""

from scripts._job import run_job
from vitscope.jobs.figures import DRAW_OVERVIEW

run_job(DRAW_OVERVIEW, snakemake)
