"""What all stages share: the studies, what a job depends on, and what it asks of a cluster."""

import atexit
import functools
import gc
import json
import os
import re
import sys
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

# Search for garbage seldom, also while importing: nearly all stays until the end of a run, and
# searching it takes a quarter of the processor time of one with nothing to do.
gc.set_threshold(100_000, 20, 50)

from vitscope import package_data
from vitscope.errors import VitscopeError
from vitscope.files.pages import as_inert, as_rst
from vitscope.files.strict_yaml import load_yaml
from vitscope.jobs import describing
from vitscope.jobs.job import find_job
from vitscope.measures import registry
from vitscope.planning import code, costs_of_job, targets
from vitscope.studies.loading import find_studies
from vitscope.settings.study import Study
from vitscope.settings.snapshots import END
from vitscope.training.history import remove_unfinished
from vitscope.web import without_secrets


def from_here(path):
    """Return a path relative to the working directory: if both move together, no job reruns."""
    return local(os.path.relpath(path))


STYLE = from_here(package_data.STYLE)
ROOT = Path(from_here(package_data.ROOT))
FOLDERS = {name: name for name in ("figures", "results")} | config.get("pathvars", {})


def say_last(*sentences):
    """Print each sentence once, at the very end of the output, where users look."""
    new = [each for each in dict.fromkeys(sentences) if each not in SAID]
    SAID.update(new)
    if new:
        atexit.register(print, *new, sep="\n", file=sys.stderr, flush=True)


SAID = set()


def exit_on_user_error(function, *arguments):
    """Call a function of vitscope; on an error of the user, print its sentence and exit."""
    try:
        return function(*arguments)
    except VitscopeError as error:
        # Exit, since Snakemake prints a traceback with its own errors. Print the sentence last,
        # since an error while Snakemake plans jobs would be lost among much other output.
        say_last(f"vitscope: {error}")
        sys.exit(1)


# Snakemake silently takes the last of repeated keys.
exit_on_user_error(load_yaml, ROOT / "config" / "config.yaml")
ALL_STUDIES = exit_on_user_error(find_studies, config, "config/config.yaml or --config")
DEFAULT = ALL_STUDIES.default


def studies_to_read():
    """Return the studies that a command may reach, since reading all takes longer than planning.

    Rules of another workflow, and a program that is not Snakemake's, may ask for files of any.
    """
    ours = Path(workflow.basedir).is_relative_to(package_data.ROOT)
    program = "/".join(Path(sys.argv[0]).parts[-2:])
    named = ours and program in ("bin/snakemake", "snakemake/__main__.py")
    return ALL_STUDIES.reached_from(sys.argv[1:]) if named else ALL_STUDIES


exit_on_user_error(ALL_STUDIES.__getitem__, DEFAULT)
# The studies that can be read; the error of another is reported when a file of it is requested.
STUDIES = {}
for study_name in studies_to_read():
    with suppress(VitscopeError):
        STUDIES[study_name] = ALL_STUDIES[study_name]

code.cache_code(Path(".snakemake"))


def one_of(names):
    """Return a wildcard constraint that matches these names and nothing else."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def named_by(find):
    """Return the names that the function `find` returns for any study."""
    return {name for study in STUDIES.values() for name in find(study)}


def names_in(section):
    return named_by(lambda study: getattr(study, section))


def shown_in(section):
    """Return a constraint: STUDY/NAME for the names in a section, NAME in the default study."""
    shown = {name: getattr(study, section) for name, study in STUDIES.items()}
    found = {f"{study}/{name}" for study, names in shown.items() for name in names}
    return one_of(found | set(shown[DEFAULT]))


# Matches a name that nothing else in a path resembles: `study_of` refuses those that a study lacks.
ANY_NAME = r"[^/.+]+"
# Where a path may also be a figure's, or a file of weights that was trained without this workflow.
MODELS = one_of(names_in("models"))
# Values of these wildcards may begin with the folder of their study, as in `mini/fig9`.
SHOWN = ("figure", "video", "buildup", "folder")


def study_of(wildcards):
    """Return the study of a path; a path that names none belongs to the default study.

    Refuse names that this study lacks.
    """
    folders = [wildcards.get(key, "").rpartition("/")[0] for key in SHOWN]
    name = wildcards.get("study") or "".join(folders) or DEFAULT
    check_names(name, tuple(names_of(wildcards).items()))
    return STUDIES[name]


@functools.cache
def check_names(study, names):
    """Exit if a study lacks names that a path has."""
    exit_on_user_error(targets.check_target_names, STUDIES[study], dict(names))


def names_of(wildcards):
    """Return the wildcards of a job, without its study, as the names that vitscope takes."""
    names = {key: value for key, value in wildcards.items() if key != "study"}
    return names | {key: names[key].rpartition("/")[2] for key in SHOWN if key in names}


class Given(dict):
    """The values of a job as Snakemake has them: what it writes of them is safe to be read.

    `.snakemake/metadata` notes `repr`, in which no address shows a token; when it changes, Snakemake
    prints it before and after, so that the values of a whole study are noted by their digest. The
    report prints `str`, which has no text of a study; its captions write texts by `rst`. Jobs get a
    plain dictionary.
    """

    MOST = 5_000  # characters

    def __repr__(self):
        said = repr(without_secrets(dict(self)))
        if len(said) <= self.MOST:
            return said
        return f"{len(said):,} characters of digest {sha256(said.encode()).hexdigest()[:16]}"

    def __str__(self):
        return "those in run.yaml"

    def rst(self, text):
        return as_rst(" ".join(text.split()))

    def __reduce__(self):
        return dict, (dict(self),)


# The file in which jobs are noted if `vitscope plan` asks for them.
PLAN = os.environ.get("VITSCOPE_PLAN")


def values_and_code_of(name, **constants):
    """Return the parameters of a rule, which runs again if one changes, as if an input is newer.

    `values` are the settings of the study that the job's result depends on; vitscope/jobs says
    which. `code` is a digest of the code that the job reaches. Both depend on wildcards and on
    `constants`, which take the place of further wildcards.
    """

    @functools.lru_cache(maxsize=1)
    def find_values_and_digest(study, names):
        found = find_job(name).values(STUDIES[study], dict(names) | constants)
        return Given(found), code.code_digest(name, found)

    def values_and_digest(wildcards):
        names = tuple(sorted(names_of(wildcards).items()))
        return exit_on_user_error(find_values_and_digest, study_of(wildcards).name, names)

    # Snakemake compares results of functions that take only wildcards. It ignores those that also
    # take `output`.
    def values(wildcards):
        return values_and_digest(wildcards)[0]

    def digest(wildcards):
        return values_and_digest(wildcards)[1]

    def note_for_plan(wildcards, output):
        job = [str(output[0]), name, study_of(wildcards).name, names_of(wildcards)]
        with open(PLAN, "a", encoding="utf-8") as plan:
            print(json.dumps(job), file=plan)
        return ""

    planned = {"planned": note_for_plan} if PLAN else {}
    return {"values": values, "code": digest, **planned}


def request_of(name, wildcards, input, **constants):
    """Return a job and its request, with the sizes that its input files tell."""
    job, names = find_job(name), names_of(wildcards) | constants
    request = costs_of_job.request_of(study_of(wildcards), names)
    return job, exit_on_user_error(costs_of_job.with_inputs, job, request, dict(input.items()))


def requests_of(name, most=float("inf"), **constants):
    """Return the memory and time that a job asks a cluster for (vitscope/planning/costs_of_job.py).

    Both double at every further attempt, memory at most to `most` times the first request: where
    time is short, a training has many attempts and doubles its memory only once. Every job runs on
    one thread unless `--set-threads` says more, so that its results are the same bytes everywhere.
    """

    def megabytes(wildcards, input, attempt):
        request = request_of(name, wildcards, input, **constants)
        return costs_of_job.megabytes(*request) * min(2 ** (attempt - 1), most)

    def minutes(wildcards, input, attempt):
        request = request_of(name, wildcards, input, **constants)
        return costs_of_job.minutes(*request) * 2 ** (attempt - 1)

    return {"mem_mb": megabytes, "runtime": minutes}


def gpu_of(wildcards):
    """Return 1, to ask for a GPU, if the study demands one; `device: auto` takes what is there."""
    return int(study_of(wildcards).device == "cuda")


def lock_file_of(wildcards):
    """Return the lock file of a study, which has the digests of its downloads.

    Jobs read and write it, so it is neither an input nor an output. As a parameter it would be part
    of the key under which users of a cache share downloads; resources are not, and may be text.
    """
    return str(study_of(wildcards).lock_path)
