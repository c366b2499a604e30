from scripts._job import run_job
from vitscope.jobs.figures import EXPORT_FIGURE

run_job(EXPORT_FIGURE, snakemake)
