"""What Snakemake has no public way for: four uses of what is not in its documentation.

Numbers with `#` are issues of Snakemake's that would make one needless.
tests/runs (test_failures, test_refusals, test_storage) fail where one breaks.
"""

from shutil import which

# Finds the log of a failed job in Snakemake's own log; the job's log may be in a storage.
LOG_OF_JOB = re.compile(
    r"^ +log: (?:\w+://)?(.+?)(?: \(send to storage\))? \(check log file", re.MULTILINE
)

# 1. `workflow.configfiles` (#2323): Snakemake silently takes the last of repeated keys, so read the
# user's files again, which only this names. In a module, it names another workflow's files: skip.
if Path(workflow.basedir).is_relative_to(package_data.ROOT):
    for configfile_path in workflow.configfiles:
        exit_on_user_error(load_yaml, Path(from_here(configfile_path)))


def without_storage(output):
    """Return a rule's output as the rule has it, which Snakemake puts into the storage once.

    2. `storage_object` (#3027, #3876): of what is in a storage, `rules` has the local copy.
    """
    if not output.is_storage:
        return output
    prefix = workflow.storage_settings.default_storage_prefix
    return output.storage_object.query.removeprefix(prefix).removeprefix("/")


def check_storage():
    """Stop before the first job if Snakemake's storage of files lacks the program that it runs.

    3. `workflow.storage_settings`: which storage there is, and its prefix above.
    """
    if workflow.storage_settings.default_storage_provider == "fs" and not which("rsync"):
        say_last(
            "vitscope: --default-storage-provider fs copies by rsync, which is not on the PATH: "
            "install it, or leave the storage out."
        )
        sys.exit(1)


def weigh_jobs_when_one_ends():
    """Let Snakemake choose among the jobs that are ready when one ends, and not all the time.

    4. `scheduler.job_rate_limiter`: so as not to start too many jobs a second, Snakemake chooses
    again a second after every choice, which takes a quarter of a core. Without a limit it does not,
    but a limit can only be set, and with a long time span a run waits so long at its end.
    """
    workflow.scheduler.job_rate_limiter = None


def why_jobs_failed(logs):
    """Yield the last lines of the logs of jobs that failed, which Snakemake's own log names.

    The option `show-failed-logs` adds whole logs to that, but none that are in a storage.
    """
    for log in logs:
        for path in LOG_OF_JOB.findall(Path(log).read_text(encoding="utf-8", errors="replace")):
            copies = Path(".snakemake/storage").glob("*")
            for file in (Path(path), *(copy / path.lstrip("/") for copy in copies)):
                text = file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""
                last = text.rstrip().rpartition("\n")[2]
                if last.startswith("vitscope: "):
                    yield last
