"""Three undocumented uses of Snakemake, for which it has no public way.

Numbers with `#` are issues of Snakemake that, once closed, make a use needless.
Tests in tests/runs (test_failures, test_refusals, test_storage) fail if a use breaks.
"""

import logging
from shutil import which

# On a full disk, do not print a traceback for each line of Snakemake's log.
logging.raiseExceptions = False

# Finds the log of a failed job in Snakemake's own log; the job's log may be in a storage.
LOG_OF_JOB = re.compile(
    r"^ +log: (?:\w+://)?(.+?)(?: \(send to storage\))? \(check log file", re.MULTILINE
)


def without_storage(output):
    """Return a rule's output as the rule declares it, for Snakemake to put into the storage.

    1. `storage_object` (#3027, #3876): if files are in a storage, `rules` has their local copies.
    """
    if not output.is_storage:
        return output
    prefix = workflow.storage_settings.default_storage_prefix
    return output.storage_object.query.removeprefix(prefix).removeprefix("/")


def check_storage():
    """Exit before the first job if Snakemake's storage in files lacks the program that it runs.

    2. `workflow.storage_settings`: the kind of storage, and in `without_storage` its prefix.
    """
    if workflow.storage_settings.default_storage_provider == "fs" and not which("rsync"):
        say_last(
            "vitscope: --default-storage-provider fs copies by rsync, which is not on the PATH: "
            "install it, or leave the storage out."
        )
        sys.exit(1)


def weigh_jobs_when_one_ends():
    """Let Snakemake choose among ready jobs only when a job ends.

    3. `scheduler.job_rate_limiter`: to limit how many jobs start in a second, Snakemake chooses
    again one second after every choice, so that choices add up: in a run of 483 jobs, Snakemake's
    own process took 13 minutes of processor time in the first 40. Without a limit it does not
    choose again, but options can only change the limit; with a long time span, a run waits this
    long at its end.
    """
    workflow.scheduler.job_rate_limiter = None


def why_jobs_failed(logs):
    """Yield the last lines of the logs of failed jobs; `logs` are Snakemake's own, which name them.

    The option `show-failed-logs` adds whole logs to Snakemake's, but none that are in a storage.
    """
    for log in logs:
        for path in LOG_OF_JOB.findall(Path(log).read_text(encoding="utf-8", errors="replace")):
            copies = Path(".snakemake/storage").glob("*")
            for file in (Path(path), *(copy / path.lstrip("/") for copy in copies)):
                text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
                last = text.rstrip().rpartition("\n")[2]
                if last.startswith("vitscope: "):
                    yield last
