"""Inputs that several stages share: functions of wildcards, and paths of other rules' outputs."""

from vitscope.data.opening import require_existing
from vitscope.jobs.job import model_of
from vitscope.networks.checkpoints.weight_sources import local_file


def paths_of(output, **names):
    """Return the outputs of a rule, for all combinations of values in `names`."""
    return collect(without_storage(output), **names)


def path_of(output, wildcards, **names):
    """Return the output of a rule, for the wildcards and the study of a job.

    Values in `names` replace those of wildcards.
    """
    found = {**names_of(wildcards), "study": study_of(wildcards).name, **names}
    return without_storage(output).format(**found)


def split_for(split):
    """Return a function that finds a split of the data set of the model that a job is about."""

    def path_of_split(wildcards):
        study = study_of(wildcards)
        dataset = study.models[model_of(study, names_of(wildcards))].data
        name = split(study) if callable(split) else split
        return path_of(rules.build_split.output.images, wildcards, dataset=dataset, split=name)

    return path_of_split


TRAINED = re.compile(r"(init|warmup|end|epoch_\d+)\.safetensors|history\.parquet")


def made_by_training(path):
    """Tell whether rules/training.smk or rules/buildups.smk makes a file."""
    if not Path(path).is_relative_to(FOLDERS["results"]):
        return False
    *folders, file = Path(path).relative_to(FOLDERS["results"]).parts or [""]
    of_model = len(folders) == 3 and folders[1] == "training"
    of_step = len(folders) == 5 and (folders[1], folders[3]) == ("buildups", "trained")
    return bool((of_model or of_step) and TRAINED.fullmatch(file))


def named_file(wildcards, key, entry, download=None):
    """Return the file that an entry of a model names: trained, on this machine or downloaded."""
    if made_by_training(entry.get("path", "")):
        return entry["path"]
    where = f"{study_of(wildcards).path}: models.{wildcards.model}.{key}"
    there = exit_on_user_error(local_file, where, entry, ROOT, study_of(wildcards).path)
    return download if there is None else local(str(there))


def given_file(study, key, path):
    """Return the file or folder that a study names, or [] if it names none."""
    where = f"{study.path}: {key}"
    if path is None:
        return []
    return local(exit_on_user_error(require_existing, where, Path(path).expanduser(), study.path))


# The path of the table of a model or a pair, for every rule that makes one.
OF_SUBJECT = "<results>/{study}/{table}/{model}.parquet"


def paths_of_models(path, of=Study.models_of):
    """Return a function that finds a path for every model that `of` lists for a study."""

    def paths_for_study(wildcards):
        study = study_of(wildcards)
        return paths_of(path, study=study.name, model=of(study))

    return paths_for_study


def joined_tables(names):
    """Return a function that finds the joined tables that `names` lists for a study."""

    def paths_by_table(wildcards):
        joined = rules.tabulate.output.table
        tables = names(study_of(wildcards))
        return {table: path_of(joined, wildcards, table=table) for table in tables}

    return paths_by_table


def published_points(wildcards):
    """Return the files of published points of a figure or build-up, or of a whole study."""
    study, names = study_of(wildcards), names_of(wildcards)
    known = study.figures | study.buildups
    shown = [known[names[key]] for key in ("figure", "buildup") if key in names] or known.values()
    # A figure names a file and its series, a build-up only a file.
    files = {getattr(each.published, "file", each.published) for each in shown if each.published}
    return [from_here(package_data.PUBLISHED_POINTS / name) for name in sorted(files)]


def all_files_of(study, folder):
    """Return all files of a study: figures and videos below a folder, its tables, its record."""
    shown = sorted([*STUDIES[study].figures, *STUDIES[study].buildups])
    formats = targets.FORMATS
    return [
        *collect("{folder}/{figure}.{format}", folder=folder, figure=shown, format=formats),
        *collect("{folder}/{video}.webp", folder=folder, video=sorted(STUDIES[study].videos)),
        *paths_of(rules.tabulate.output.table, study=study, table=STUDIES[study].tables()),
        *paths_of(rules.count_claims.output.claims, study=study),
        *paths_of(rules.draw_overview.output.pdf, study=sorted({study} & STUDIES_WITH_OVERVIEW)),
        *paths_of(rules.record_run.output.record, study=study),
    ]
