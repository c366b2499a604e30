"""What all stages share: the studies, what a job depends on, and what it asks of a cluster."""

import atexit
import functools
import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path

from vitscope import package_data
from vitscope.errors import VitscopeError
from vitscope.files import python_code
from vitscope.files.strict_yaml import load_yaml
from vitscope.jobs.curves import tables_of_curves
from vitscope.jobs import describing
from vitscope.jobs.figures import figures_of_overview, kinds_of_page
from vitscope.jobs.job import find_job
from vitscope.measures import registry
from vitscope.measures.registry import title_of
from vitscope.planning import code, costs, targets
from vitscope.studies.loading import find_studies
from vitscope.settings.study import Study
from vitscope.settings.snapshots import END
from vitscope.training.history import remove_unfinished


def from_here(path):
    """Return a path as seen from here, so that results stay up to date where their folder moves."""
    return local(os.path.relpath(path))


STYLE = from_here(package_data.STYLE)
ROOT = Path(from_here(package_data.ROOT))
FOLDERS = {name: name for name in ("figures", "results")} | config.get("pathvars", {})


def say_last(*sentences):
    """Print sentences when all else is said, where the eye is, each once."""
    new = [each for each in dict.fromkeys(sentences) if each not in SAID]
    SAID.update(new)
    if new:
        atexit.register(print, *new, sep="\n", file=sys.stderr, flush=True)


SAID = set()


def exit_on_user_error(function, *arguments):
    """Call a function of vitscope; what a user got wrong ends in its one sentence."""
    try:
        return function(*arguments)
    except VitscopeError as error:
        # Exit, since Snakemake prints a traceback with its own errors. Print the sentence last,
        # since an error while Snakemake plans jobs would be lost among much other output.
        say_last(f"vitscope: {error}")
        sys.exit(1)


ALL_STUDIES = exit_on_user_error(find_studies, config, "config/config.yaml or --config")
DEFAULT = ALL_STUDIES.default


exit_on_user_error(ALL_STUDIES.__getitem__, DEFAULT)
# The studies that can be read; what is wrong with another is said where a file of it is asked for.
STUDIES = {}
for study_name in ALL_STUDIES:
    with suppress(VitscopeError):
        STUDIES[study_name] = ALL_STUDIES[study_name]

# Remember what modules define and import; parse only sources that have changed.
python_code.cache_definitions(Path(".snakemake/vitscope-definitions.json"))


def one_of(names):
    """Return a wildcard constraint that matches these names and nothing else."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def named_by(find):
    """Return the names that a function finds in any study."""
    return {name for study in STUDIES.values() for name in find(study)}


def names_in(section):
    return named_by(lambda study: getattr(study, section))


STUDIES_WITH_OVERVIEW = {name for name in STUDIES if figures_of_overview(STUDIES[name])}
STUDIES_WITH_CURVES = {name for name in STUDIES if tables_of_curves(STUDIES[name])}


def shown_in(section, at_once=None):
    """Return a constraint: what a section of a study names, behind its folder or of the default.

    `at_once` takes only studies that ask for all formats of a figure, which are drawn at once, or
    only others, which have them drawn one by one.
    """
    asking = {
        name: getattr(study, section)
        for name, study in STUDIES.items()
        if at_once in (None, {*study.style.formats} == {*targets.FORMATS})
    }
    found = {f"{name}/{each}" for name, shown in asking.items() for each in shown}
    return one_of(found | set(asking.get(DEFAULT, ())))


def measured_on(wildcards, output):
    """Return what a figure says of how many images it shows; its caption reads it from the file."""
    return describing.MeasuredOn(next((path for path in output if path.endswith(".svg")), None))


# Values of these wildcards may begin with the folder of their study, as in `mini/fig9`.
SHOWN = ("figure", "video", "buildup", "folder")


def study_of(wildcards):
    """Return the study of a path; a path that names none belongs to the default study.

    Refuse a name that matches a wildcard, since another study has it, and that this one lacks.
    """
    folders = [wildcards.get(key, "").rpartition("/")[0] for key in SHOWN]
    name = wildcards.get("study") or "".join(folders) or DEFAULT
    check_names(name, tuple(names_of(wildcards).items()))
    return STUDIES[name]


@functools.cache
def check_names(study, names):
    """Stop at a file about what its study does not have."""
    exit_on_user_error(targets.check_names, STUDIES[study], dict(names))


def names_of(wildcards):
    """Return what a job is about, without its study."""
    names = {key: value for key, value in wildcards.items() if key != "study"}
    return names | {key: names[key].rpartition("/")[2] for key in SHOWN if key in names}


# The file in which `vitscope plan` looks for the jobs, if it asks for them.
PLAN = os.environ.get("VITSCOPE_PLAN")


def of_job(name, **constants):
    """Return what a job depends on: its values, by wildcards and `constants`, and its code."""

    @functools.lru_cache(maxsize=1)
    def ask(study, names):
        found = find_job(name).values(STUDIES[study], dict(names) | constants)
        return found, code.code_digest(name, found)

    def answer(wildcards):
        names = tuple(sorted(names_of(wildcards).items()))
        return exit_on_user_error(ask, study_of(wildcards).name, names)

    # Snakemake compares results of functions that take only wildcards. It ignores `planned`, which
    # also takes `output`.
    def values(wildcards):
        return answer(wildcards)[0]

    def digest(wildcards):
        return answer(wildcards)[1]

    def planned(wildcards, output):
        job = [str(output[0]), name, study_of(wildcards).name, names_of(wildcards)]
        with open(PLAN, "a", encoding="utf-8") as plan:
            print(json.dumps(job), file=plan)
        return ""

    return {"job": name, "values": values, "code": digest} | ({"planned": planned} if PLAN else {})


def request_of(name, wildcards, input, **constants):
    """Return a job, with what its inputs say of how much there is to do."""
    job, names = find_job(name), names_of(wildcards) | constants
    request = costs.request_of(study_of(wildcards), names)
    return job, exit_on_user_error(costs.with_inputs, job, request, dict(input.items()))


def requests_of(name, most=float("inf"), **constants):
    """Return what a job asks of a cluster: memory and time, as vitscope/planning/costs.py says.

    Each request doubles at every further attempt, the memory at most to `most` times as much: a
    training doubles it once, since where time is short it has many attempts. Every job runs on one
    thread unless `--set-threads` says more, so that its results are the same bytes everywhere.
    """

    def megabytes(wildcards, input, attempt):
        request = request_of(name, wildcards, input, **constants)
        return costs.megabytes(*request) * min(2 ** (attempt - 1), most)

    def minutes(wildcards, input, attempt):
        return costs.minutes(*request_of(name, wildcards, input, **constants)) * 2 ** (attempt - 1)

    return {"mem_mb": megabytes, "runtime": minutes}


def gpu_of(wildcards):
    """Ask for a GPU where the study demands one; `device: auto` takes what there is."""
    return int(study_of(wildcards).device == "cuda")


def lock_of(wildcards):
    """Return the lock file of a study: no parameter, so that users of a cache share downloads."""
    return str(study_of(wildcards).lock_path)
