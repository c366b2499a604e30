"""Run the job that a rule names; this is the script of every rule."""

import signal

# Let Ctrl-C end the job without a traceback; the run itself reports it.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from scripts._job import run_job  # noqa: E402

run_job(snakemake)
