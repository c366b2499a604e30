"""Which targets a user may ask for; all others are refused in one sentence.

Targets are rules by their names, or paths below the folders of figures and results.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from os.path import normpath, relpath
from pathlib import Path

from vitscope.errors import VitscopeError, listed, nearest, quoted, unknown
from vitscope.files.pairs import by_prefix
from vitscope.jobs.latents import FORMATS as LATENTS_FORMATS
from vitscope.jobs.measures import measure_of_parts, measures_of_pass
from vitscope.measures import registry
from vitscope.settings.keys import Config
from vitscope.settings.section import schema_of
from vitscope.settings.study import Study
from vitscope.studies.loading import StudyFiles

FORMATS = ("pdf", "svg", "png")
# The format of the points of a figure, which are written on demand.
POINTS = "csv"
# The formats of videos; the first is made with all of a study.
VIDEO_FORMATS = ("webp", "gif", "mp4")
# What `figures/{study}/all` ends in: a target, and no file.
ALL = "all"
# Tables that belong to any study, whatever its figures are.
_ALWAYS = ("claims", "agreement")
_PAGES = ("claims.md", "claims.html", "claims.tex")
# Each table as it is kept, and on demand for others to read.
TABLE_FORMATS = ("parquet", "csv")
# Files that every model has: the folder of results that they are in, and their suffix.
MADE_OF_MODELS = (
    ("checkpoints", "safetensors"),
    ("blocks", "parquet"),
    *(("latents", suffix) for suffix in LATENTS_FORMATS.values()),
)


@dataclass(frozen=True)
class Places:
    """The folders that a run writes figures and results to, and the names of its rules."""

    figures: str
    results: str
    rules: tuple[str, ...]


def exported(study: Study) -> list[str]:
    """Return the tables of a study by their names."""
    return [*study.tables(), *(f"buildup_{name}" for name in study.buildups), *_ALWAYS]


def is_shown(target: str, studies: StudyFiles, places: Places) -> bool:
    """Tell whether a target is a figure or video of a study, as most are; others may be targets."""
    path = Path(normpath(target))
    if not path.is_relative_to(normpath(places.figures)):
        return False
    *folder, file = path.relative_to(normpath(places.figures)).parts
    name = folder[0] if folder else studies.default
    if len(folder) > 1 or name not in studies:
        return False
    study, (stem, _, suffix) = studies[name], file.rpartition(".")
    known = stem in {*study.figures, *study.videos, *study.buildups}
    return known and suffix in _formats(study, stem)


def _formats(study: Study, name: str) -> tuple[str, ...]:
    """Return the formats of a figure, of a video, or of a build-up, which is both."""
    if name in study.videos:
        return VIDEO_FORMATS
    return (*FORMATS, POINTS, *(VIDEO_FORMATS if name in study.buildups else ()))


def refuse_unknown(target: str, studies: StudyFiles, places: Places) -> None:
    """Refuse a target that nothing makes: say what of it is unknown, and what is like it."""
    key, given, _ = target.partition("=")
    if given and key in schema_of(Config)["properties"]:
        raise VitscopeError(
            f"{target} is a setting and no target: write --config before it, and targets before "
            f"that."
        )
    path = Path(relpath(target) if Path(target).is_absolute() else normpath(target))
    for folder, refuse in ((places.figures, _figure), (places.results, _result)):
        if path.is_relative_to(normpath(folder)) and path != Path(normpath(folder)):
            refuse(target, path.relative_to(normpath(folder)).parts, studies)
    known = [*places.rules, *(f"{places.figures}/{file}" for file in _all_figures(studies))]
    # A user who writes `fig9` or `own/fig9.pdf` means a figure of that name.
    meant = str(path.parent / path.stem)
    ends = [each for each in known if meant in (Path(each).stem, _below(each))]
    hint = f" Did you mean '{ends[0]}'?" if ends else nearest(str(path), known)
    raise VitscopeError(
        f"found the target {quoted(target)}, allowed: a rule (snakemake --list), or a path as in "
        f"{places.figures}/STUDY/FIGURE.pdf, {places.figures}/STUDY/{ALL} and "
        f"{places.results}/STUDY/tables/TABLE.parquet.{hint}"
    )


def _below(target: str) -> str:
    """Return a path without its first folder and its suffix."""
    path = Path(target)
    return str(Path(*path.parts[1:-1], path.stem))


def _all_figures(studies: StudyFiles) -> Iterable[str]:
    """Yield a file of each figure and each video, of the default study without its folder."""
    for name in (studies.default, *studies):
        with suppress(VitscopeError):
            study = studies[name]
            files = [f"{each}.{FORMATS[0]}" for each in (*study.figures, *study.buildups)]
            files += [f"{each}.{VIDEO_FORMATS[0]}" for each in study.videos]
            yield from files if name == studies.default else ()
            yield from (f"{name}/{file}" for file in (*files, ALL))


def _study(target: str, name: str, studies: StudyFiles) -> Study:
    if name not in studies:
        raise VitscopeError(
            f"{target}: found the study {quoted(name)}, allowed: {listed(studies)}."
            f"{nearest(name, studies)} A study of your own is found by "
            f"--config studies_dir=FILE, or the folder of the file."
        )
    return studies[name]


def _figure(target: str, parts: tuple[str, ...], studies: StudyFiles) -> None:
    """Refuse a path below the folder of figures: FIGURE.pdf, STUDY/FIGURE.pdf, or of a video."""
    if len(parts) == 1 and parts[0] in studies:
        study = _study(target, parts[0], studies)
        raise VitscopeError(
            f"{target} is a folder: add the name of a figure of {study.path}, as in "
            f"{target.rstrip('/')}/{next(iter(study.figures))}.pdf, or {ALL} for all of them."
        )
    study = _study(target, studies.default if len(parts) == 1 else parts[0], studies)
    file = Path(parts[-1])
    found = file.suffix.removeprefix(".")
    is_video = found in VIDEO_FORMATS or file.stem in study.videos
    kind = "video" if is_video else "figure"
    check_names(target, study, {"buildup" if file.stem in study.buildups else kind: file.stem})
    formats = _formats(study, file.stem)
    if found not in formats:
        raise VitscopeError(
            f"{target}: found {quoted(found)} as the format, allowed: {', '.join(formats)}."
        )


def _result(target: str, parts: tuple[str, ...], studies: StudyFiles) -> None:
    """Refuse a path below the folder of results: STUDY/tables/TABLE.parquet and others."""
    study = _study(target, parts[0], studies)
    tables = [f"{name}.{suffix}" for suffix in TABLE_FORMATS for name in exported(study)]
    tables += _PAGES
    if parts[1:2] == ("tables",) and len(parts) == 3:
        check_names(target, study, {"table": Path(parts[2]).stem})
        raise unknown(study.path, f"tables, for the target {target}", parts[2], tables)
    paths = [
        "run.yaml",
        *(f"tables/{table}" for table in tables),
        *(
            f"{folder}/{model}.{suffix}"
            for model in study.models
            for folder, suffix in MADE_OF_MODELS
        ),
        *(f"{measure}/{model}.parquet" for measure in study.measures() for model in study.models),
    ]
    raise VitscopeError(
        f"{target}: no rule makes it, of the study {study.name} there are files such as run.yaml, "
        f"tables/TABLE.parquet and MEASURE/MODEL.parquet.{nearest('/'.join(parts[1:]), paths)}"
    )


def check_names(target: str, study: Study, names: Mapping[str, str]) -> None:
    """Refuse what a target names and the study does not have: by rules, another study might."""
    shown = [*study.figures, *study.buildups, *study.videos]
    known: dict[str, tuple[str, Iterable[str]]] = {
        "figure": ("figures, buildups and videos", shown),
        "video": ("videos", study.videos),
        "buildup": ("buildups", study.buildups),
        # Tables of pairs have the name of a pair in place of the name of a model.
        "model": ("models", [*study.models, *study.pairs()]),
        "dataset": ("data", study.data),
    }
    for wildcard, (section, allowed) in known.items():
        if wildcard in names and names[wildcard] not in allowed:
            raise unknown(study.path, _for(section, target), names[wildcard], allowed)
    if "table" in names:
        check_table(study, names["table"])
    if "measure" in names and "model" in names:
        _check_shown(target, study, names["measure"], names["model"])
    if "snapshot" in names and "model" in names:
        moments = study.models[names["model"]].moments()
        if names["snapshot"] not in moments:
            at = _for(f"models.{names['model']}.snapshots", target)
            raise unknown(study.path, at, names["snapshot"], moments)
    if "split" in names:
        data = names.get("dataset") or study.models[names["model"]].data
        splits = study.data[data].splits
        if names["split"] not in splits:
            at = _for(f"data.{data}.splits", target)
            raise unknown(study.path, at, names["split"], splits)


def _for(section: str, target: str) -> str:
    return f"{section}, for the target {target}"


def _check_shown(target: str, study: Study, name: str, model: str) -> None:
    """Refuse a measure whose figures say what a job measures of a model, where none has it.

    Figures say at which moments of training the loss is measured, and what is measured of maps.
    """
    measured = measure_of_parts(registry.of(study).declared(name))
    of_loss = measured.need.of_training and not measured.snapshots(study, model)
    of_maps = measured.needs == "latents" and any(
        measured.name not in [measure.name for measure in measures_of_pass(study, each)]
        for each in by_prefix(model).values()
    )
    if of_loss or of_maps:
        check_table(study, name)
        shown = study.models_of(name)
        raise unknown(study.path, _for(f"models of figures of {name}", target), model, shown)


def check_table(study: Study, table: str) -> None:
    """Refuse a table that no figure of a study needs: nothing says which models it is of."""
    known = registry.of(study).kinds()
    kinds = [f"'{name}'" for name, kind in known.items() if table in kind.tables]
    if kinds and not study.figures_of(table):
        raise VitscopeError(
            f"{study.path}: figures: found none that needs the table '{table}', so that nothing "
            f"says of which models it is: add a figure of the kind {' or '.join(kinds)}."
        )
