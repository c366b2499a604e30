"""What all stages share: the studies, and how the library is asked about them."""

import os
import re
import sys
from pathlib import Path

from vitscope import package_data
from vitscope.errors import VitscopeError
from vitscope.files.strict_yaml import load_yaml
from vitscope.measures import registry
from vitscope.networks.checkpoints.weight_sources import local_file
from vitscope.settings.loading import load_config
from vitscope.settings.study import Study
from vitscope.training.snapshots import END
from vitscope.workflow import params, reach, session, targets, trainings


def from_here(path):
    """A path as seen from here, so that a folder of results that moves is still up to date."""
    return os.path.relpath(path)


# How figures look.
STYLE = from_here(package_data.STYLE)
ROOT = Path(from_here(workflow.basedir))
SCRIPTS = ROOT / "scripts"


def clear(function, *arguments):
    """Call a function of vitscope; what a user got wrong ends in its one sentence."""
    try:
        return function(*arguments)
    except VitscopeError as error:
        # Snakemake adds a traceback to errors of its own kind and none to this.
        sys.exit(f"vitscope: {error}")


# Snakemake has read these already, but took the last of keys that are there twice.
for configfile_path in workflow.configfiles:
    clear(load_yaml, Path(from_here(configfile_path)))

LOADED = clear(load_config, config, "config/config.yaml or --config")
DEFAULT, STUDIES = LOADED.default, LOADED.usable

# Scripts find them here, and not among params: those decide which downloads users of a cache share.
config["locks"] = {name: str(study.lock_path) for name, study in STUDIES.items()}


def one_of(names):
    """A wildcard constraint that matches these names and nothing else."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def names_in(section):
    """The names that any study uses in a section."""
    return {name for study in STUDIES.values() for name in getattr(study, section)}


def named_in_study(section):
    """A constraint that matches a name behind the folder of a study that uses it in a section.

    What is a figure of one study may be a build-up of another.
    """
    names = {(study.name, name) for study in STUDIES.values() for name in getattr(study, section)}
    found = (f"(?<={re.escape(study)}/){re.escape(name)}" for study, name in sorted(names))
    return "|".join(found) or "(?!)"


def pair_names():
    """The names of all pairs of models that any study shows."""
    return {pair for study in STUDIES.values() for pair in study.pairs()}


def split_names():
    """The names of all splits of all data sets."""
    data = [data for study in STUDIES.values() for data in study.data.values()]
    return {split for dataset in data for split in dataset.splits}


def snapshot_names():
    """The names of all moments of training."""
    models = [model for study in STUDIES.values() for model in study.models.values()]
    return {name for model in models for name in model.moments()}


def tables_in(*studies):
    """The tables that the figures of some studies need, or of all."""
    return {table for study in studies or STUDIES for table in STUDIES[study].tables()}


def study_of(wildcards):
    """The study of a path; a path that names none belongs to the default study."""
    return STUDIES[getattr(wildcards, "study", DEFAULT)]


def of_study(function, *names):
    """Ask the library about the study of a path, and about what some of its wildcards name."""

    def answer(wildcards):
        return clear(function, study_of(wildcards), *(getattr(wildcards, n) for n in names))

    return answer


def device_of(wildcards):
    """Where the models of a study run."""
    return study_of(wildcards).device


def named_file(wildcards, key, entry, download=None):
    """The file that an entry of a model names: from training, on this machine or downloaded."""
    trained = (
        *rules.train_model.output,
        *rules.take_snapshot.output,
        *rules.train_step.output,
    )
    if any(made.match(entry.get("path", "")) for made in trained):
        return entry["path"]
    where = f"{study_of(wildcards).path}: models.{wildcards.model}.{key}"
    local = clear(local_file, where, entry, ROOT)
    return download if local is None else str(local)


def split_for(split):
    """The artefact of a split of the data set that a model is measured on."""

    def path(wildcards):
        study = study_of(wildcards)
        return rules.build_split.output.images.format(
            study=study.name,
            dataset=study.models[wildcards.model].data,
            split=split(study) if callable(split) else split,
        )

    return path


def weights_at(snapshot, wildcards):
    """The weights of a model at a moment of its training, at the end its checkpoint."""
    made = rules.convert_checkpoint if snapshot == END else rules.convert_snapshot
    names = {"study": wildcards.study, "model": wildcards.model, "snapshot": snapshot}
    return made.output.checkpoint.format(**names)


def all_models(path, of=Study.models_of):
    """One path for every model of the figures of a study."""

    def paths(wildcards):
        study = study_of(wildcards)
        return collect(path, study=study.name, model=of(study))

    return paths


def code_of(rule):
    """A digest of the code that a job reaches, which runs again when it changes."""

    def digest(wildcards):
        return clear(reach.digest, rule, study_of(wildcards), dict(wildcards.items()), SCRIPTS)

    return digest


def start_alone():
    """Stop if another run is at work in this folder, or what one left behind on a cluster."""
    records = Path(".snakemake")
    clear(session.claim_folder, records)
    clear(session.refuse_jobs_left_in_slurm, records)
    session.end_when_told()


def tell_failures_last():
    """Say why jobs failed when all else is said, where it is seen: their logs have it."""
    failed = [job for each in workflow.scheduler.failed for job in getattr(each, "jobs", [each])]
    logs = [Path(log) for job in failed for log in job.log]
    session.tell_last(session.failures(logs))


def check_places():
    """Stop before the first job if one is to write to a folder where it may not."""
    jobs = workflow.dag.needrun_jobs()
    clear(
        session.refuse_places_without_access, [Path(f) for j in jobs for f in (*j.output, *j.log)]
    )
