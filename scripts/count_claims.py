"""Count the claims of the paper on a study's tables; write and draw the verdicts."""

from scripts._job import run_job
from vitscope.jobs.claims import COUNT_CLAIMS

run_job(COUNT_CLAIMS, snakemake)
