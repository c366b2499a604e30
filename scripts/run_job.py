"""Do the job that the rule names: the script of every rule."""

import signal

# Ctrl-C reaches jobs too, and the run itself reports it.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from scripts._job import run_job  # noqa: E402

run_job(snakemake)
