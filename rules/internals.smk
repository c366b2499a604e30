"""What Snakemake has no public way for, each with its reason; and how a run begins and ends.

tests/runs (test_refusals, test_failures, test_rebuilds, test_module) and tests/faults fail where one breaks.
"""

from shutil import which

from snakemake.cli import get_argument_parser
from snakemake.dag import DAG

# Whether another workflow takes this one as a module: targets and files of settings are its own then,
# and Snakemake leaves out what is to be done at the start and at the end of a run.
IS_MODULE = workflow.modifier.parent_modifier is not None

# Snakemake has read these already, but took the last of keys that are there twice; which files a
# user gave is known by `workflow.configfiles` alone.
for configfile_path in [] if IS_MODULE else workflow.configfiles:
    exit_on_user_error(load_yaml, Path(from_here(configfile_path)))


def without_storage(output):
    """The path of a rule's output as the rule has it, which Snakemake puts into the storage once.

    Where there is a default storage, what `rules` says is the copy on this machine.
    """
    if not output.is_storage:
        return output
    prefix = workflow.storage_settings.default_storage_prefix
    return output.storage_object.query.removeprefix(prefix).removeprefix("/")


def asked_for():
    """The targets of the command line.

    Snakemake looks at them when all rules are read and says of a wrong one that its rule is
    missing; nothing of it can be called in between. Jobs of it have other targets than these.
    """
    if Path(sys.argv[0]).parent.name != "snakemake" and Path(sys.argv[0]).name != "snakemake":
        return []
    return get_argument_parser().parse_known_args(sys.argv[1:])[0].targets


def refuse_wrong_targets():
    """Stop, before anything is planned, at a target that nothing makes or a study does not have."""
    if IS_MODULE:
        return
    names = tuple(rule.name for rule in workflow.rules)
    places = targets.Places(FOLDERS["figures"], FOLDERS["results"], names)
    words = [word for word in sys.argv[1:] if not word.startswith("-")]
    if all(exit_on_user_error(targets.is_shown, word, ALL_STUDIES, places) for word in words):
        # As mostly: to make Snakemake's parser takes a tenth of a second.
        return
    for target in filter(lambda target: target not in names, asked_for()):
        if exit_on_user_error(targets.is_shown, target, ALL_STUDIES, places):
            continue
        path = target if os.path.isabs(target) else os.path.relpath(target)
        # Which wildcards a path has is asked of the rules: that they match it is no public fact.
        stored = workflow.inputfile(path)
        made = [file.match(stored) for rule in workflow.rules for file in rule.products()]
        found = [match.groupdict() for match in made if match]
        if not found:
            exit_on_user_error(targets.refuse_unknown, target, ALL_STUDIES, places)
        for wildcards in found:
            study, of_target = study_of(wildcards), names_of(wildcards)
            exit_on_user_error(targets.check_names, target, study, of_target)


class Runs:
    """Which jobs run because another does: those that it is more than an ancient input to."""

    def __init__(self, depending):
        self.depending = depending

    def __getitem__(self, job):
        files_of = self.depending[job].items()
        return {other: files for other, files in files_of if not all(f.is_ancient for f in files)}


def ask_jobs_behind_ancient_inputs(plan=DAG.update_needrun):
    """Let Snakemake ask such jobs, too, whether anything has changed about them.

    It asks no job behind one that runs, since that will run as well; but behind an ancient input it
    will not, and what had changed about it waited for the next run. All that `bfs` is called for
    while jobs are planned is to find which not to ask.
    """

    async def plan_asking(dag, *arguments, **options):
        dag.bfs = lambda depending, job: DAG.bfs(dag, Runs(depending), job)
        try:
            await plan(dag, *arguments, **options)
        finally:
            vars(dag).pop("bfs", None)

    DAG.update_needrun = plan_asking


ask_jobs_behind_ancient_inputs()


def start_alone():
    """Stop if another run is at work in this folder, or what one left behind on a cluster."""
    records = Path(".snakemake")
    exit_on_user_error(session.claim_folder, records)
    exit_on_user_error(session.refuse_jobs_left_in_slurm, records)
    session.end_when_told()


def check_storage():
    """Stop before the first job if Snakemake's storage of files lacks the program that it runs."""
    if workflow.storage_settings.default_storage_provider == "fs" and not which("rsync"):
        sys.exit(
            "vitscope: --default-storage-provider fs copies by rsync, which is not on the PATH: "
            "install it, or leave the storage out."
        )


def weigh_jobs_when_one_ends():
    """Let Snakemake choose among the jobs that are ready when one ends, and not all the time.

    So as not to start too many jobs a second, it does so again a second after every choice, which
    takes a quarter of a core. Where jobs run on this machine, its cores are the limit.
    """
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


def report_failures_at_exit():
    """Say why jobs failed when all else is said, where it is seen: their logs have it.

    Which jobs these are, Snakemake tells its logger plugins alone.
    """
    failed = [job for each in workflow.scheduler.failed for job in getattr(each, "jobs", [each])]
    logs = [Path(log) for job in failed for log in job.log]
    session.print_at_exit(session.explain_failures(logs))


def check_places():
    """Stop before the first job if one is to write to a folder where it may not.

    Which jobs will run is known when Snakemake has planned them.
    """
    jobs = workflow.dag.needrun_jobs()
    written = [Path(file) for job in jobs for file in (*job.output, *job.log)]
    exit_on_user_error(session.refuse_places_without_access, written)
