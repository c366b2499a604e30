"""Which targets a user may ask for; all others are refused in one sentence."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from os.path import normpath, relpath
from pathlib import Path

from vitscope.errors import VitscopeError, check_known, listed, nearest, quoted, unknown
from vitscope.files.pairs import by_prefix
from vitscope.jobs.curves import CURVES, tables_of_curves
from vitscope.jobs.figures import figures_for_overview_job
from vitscope.jobs.measures import measure_of_parts, measures_in_pass_job
from vitscope.measures import registry
from vitscope.settings.keys import Config
from vitscope.settings.section import schema_of_section
from vitscope.settings.study import PAGES_OF_MODEL, PAGES_OF_STUDY, PAGES_WITH_PUBLISHED, Study
from vitscope.studies.loading import StudyFiles

FORMATS = ("pdf", "svg", "png")
# The format in which the points of a figure are written, on demand.
POINTS = "csv"
# The formats of videos; the first is the one that a whole study makes.
VIDEO_FORMATS = ("webp", "gif", "mp4")
# The name of the target `figures/{study}/all`, which makes all files of a study.
ALL = "all"
_PAGES = ("claims.md", "claims.html", "claims.tex")


def exported_tables(study: Study) -> list[str]:
    return [*study.tables(), *(f"buildup_{name}" for name in study.buildups), "claims", "agreement"]


def check_target(target: str, studies: StudyFiles, folders: Mapping[str, str]) -> None:
    """Refuse a target that no study has; Snakemake checks names of rules and other files."""
    key, given, _ = target.partition("=")
    if given and key in schema_of_section(Config)["properties"]:
        raise VitscopeError(
            f"{target} is a setting and no target: write --config before it, and targets before "
            f"that."
        )
    path = Path(relpath(target) if Path(target).is_absolute() else normpath(target))
    for name, refuse in (("figures", _check_figure_target), ("results", _check_result_target)):
        folder = normpath(folders[name])
        if path.is_relative_to(folder) and path != Path(folder):
            refuse(target, path.relative_to(folder).parts, studies)
            return
    # A user who writes `fig9` or `own/fig9.pdf` means a figure of that name.
    meant = str(path.parent / path.stem)
    for file in _all_figures(studies):
        whole = str(Path(file).with_suffix(""))
        if meant == whole or (meant == Path(file).stem != ALL):
            raise VitscopeError(
                f"found the target {quoted(target)}, which is below no folder. Did you mean "
                f"'{folders['figures']}/{file}'?"
            )


def _all_figures(studies: StudyFiles) -> Iterable[str]:
    """Yield a file of each figure and video; files of the default study also without its folder."""
    for name in (studies.default, *studies):
        with suppress(VitscopeError):
            study = studies[name]
            files = [f"{each}.{FORMATS[0]}" for each in (*study.figures, *study.buildups)]
            files += [f"{each}.{VIDEO_FORMATS[0]}" for each in study.videos]
            yield from files if name == studies.default else ()
            yield from (f"{name}/{file}" for file in (*files, ALL))


def _find_study_of_target(target: str, name: str, studies: StudyFiles) -> Study:
    if name not in studies:
        raise VitscopeError(
            f"{target}: found the study {quoted(name)}, allowed: {listed(studies)}."
            f"{nearest(name, studies)} A study of your own is found by "
            f"--config studies_dir=FILE, or the folder of the file."
        )
    return studies[name]


def _check_figure_target(target: str, parts: tuple[str, ...], studies: StudyFiles) -> None:
    """Refuse a path below the folder of figures that names no figure, video or page of a study."""
    if len(parts) == 1 and parts[0] in studies:
        study = _find_study_of_target(target, parts[0], studies)
        raise VitscopeError(
            f"{target} is a folder: add the name of a figure of {study.path}, as in "
            f"{target.rstrip('/')}/{next(iter(study.figures))}.pdf, or {ALL} for all of them."
        )
    study = _find_study_of_target(target, studies.default if len(parts) == 1 else parts[0], studies)
    file = Path(parts[-1])
    found = file.suffix.removeprefix(".")
    if file.name == ALL:
        return
    of_model = (each for each in PAGES_OF_MODEL if file.stem.startswith(each))
    named = {*study.figures, *study.buildups, *study.videos}
    formats: tuple[str, ...] = FORMATS
    if file.stem in PAGES_OF_STUDY:
        _check_study_has_overview(study, target, file.stem)
    elif file.stem not in named and (prefix := next(of_model, None)):
        check_target_names(study, {"model": file.stem.removeprefix(prefix)})
    elif file.stem in study.videos:
        formats = VIDEO_FORMATS
    elif file.stem in study.buildups:
        formats = (*FORMATS, POINTS, *VIDEO_FORMATS)
    else:
        check_target_names(study, {"video" if found in VIDEO_FORMATS else "figure": file.stem})
        formats = (*FORMATS, POINTS)
    if found not in formats:
        raise VitscopeError(
            f"{target}: found {quoted(found)} as the format, allowed: {', '.join(formats)}."
        )


def _check_study_has_overview(study: Study, target: str, page: str) -> None:
    """Refuse the overview of a study in which no figure has published points."""
    if page in PAGES_WITH_PUBLISHED and not figures_for_overview_job(study):
        claims, network = (
            Path(target).with_name(f"{name}.{FORMATS[0]}")
            for name in ("claims", f"{PAGES_OF_MODEL[-1]}{next(iter(study.models))}")
        )
        raise VitscopeError(
            f"{target}: the page shows the figures that have published points, and {study.path} "
            f"has none: give one of its figures `published`, or ask for {claims} or {network}."
        )


def _check_study_has_curves(study: Study, target: str) -> None:
    """Refuse the page of curves of a study that measures nothing by depth."""
    if not tables_of_curves(study):
        kinds = (f"'{curve.kind}'" for curve in CURVES.values())
        raise VitscopeError(
            f"{target}: the page shows curves by depth, and {study.path} has no figure that "
            f"measures any: add one of the kind {' or '.join(kinds)}."
        )


def _check_result_target(target: str, parts: tuple[str, ...], studies: StudyFiles) -> None:
    """Refuse a path below the folder of results that names an unknown study or table."""
    study = _find_study_of_target(target, parts[0], studies)
    if parts[1:] == ("curves.html",):
        _check_study_has_curves(study, target)
    if parts[1:2] == ("tables",) and len(parts) == 3:
        # Tables are kept as parquet, and exported as CSV for other programs and as LaTeX.
        suffixes = ("parquet", "csv", "tex")
        tables = [f"{name}.{suffix}" for suffix in suffixes for name in exported_tables(study)]
        if parts[2] not in (*tables, *_PAGES):
            check_target_names(study, {"table": Path(parts[2]).stem})
            raise unknown(study.path, "tables", parts[2], [*tables, *_PAGES])


def check_target_names(study: Study, names: Mapping[str, str]) -> None:
    """Refuse names in a path that the path's study lacks: rules allow the names of all studies."""
    shown = [*study.figures, *study.buildups, *study.videos]
    known: dict[str, tuple[str, Collection[str]]] = {
        "figure": ("figures, buildups and videos", shown),
        "video": ("videos", study.videos),
        "buildup": ("buildups", study.buildups),
        # Paths of tables of pairs and triples have the name of one in place of a model's.
        "model": ("models", [*study.models, *study.groups()]),
        "dataset": ("data", study.data),
    }
    for wildcard, (section, allowed) in known.items():
        if wildcard in names:
            check_known(study.path, section, names[wildcard], allowed)
    if "table" in names:
        check_target_table(study, names["table"])
    if "measure" in names and "model" in names:
        _check_target_model_is_shown(study, names["measure"], names["model"])
    if "snapshot" in names and "model" in names:
        moments = study.models[names["model"]].moments()
        at = f"models.{names['model']}.snapshots"
        check_known(study.path, at, names["snapshot"], moments)
    if "split" in names:
        data = names.get("dataset") or study.models[names["model"]].data
        splits = study.data[data].splits
        check_known(study.path, f"data.{data}.splits", names["split"], splits)


def _check_target_model_is_shown(study: Study, name: str, model: str) -> None:
    """Refuse a model that no figure of a measure shows, if figures decide what is measured."""
    measured = measure_of_parts(registry.of(study).declared(name))
    of_loss = measured.need.of_training and not measured.snapshots(study, model)
    of_maps = measured.needs == "latents" and any(
        measured.name not in [measure.name for measure in measures_in_pass_job(study, each)]
        for each in by_prefix(model).values()
    )
    # Only of models of one shape, which figures name.
    of_line = measured.needs == "line" and model not in study.subjects_of(name)
    if of_loss or of_maps or of_line:
        check_target_table(study, name)
        shown = study.subjects_of(name) if of_line else study.models_of(name)
        raise unknown(study.path, f"models of figures of {name}", model, shown)


def check_target_table(study: Study, table: str) -> None:
    """Refuse a table that no figure of the study needs, since only figures name its models."""
    known = registry.of(study).kinds()
    kinds = [f"'{name}'" for name, kind in known.items() if table in kind.tables]
    if kinds and not study.figures_of(table):
        raise VitscopeError(
            f"{study.path}: figures: found none that needs the table '{table}', so that nothing "
            f"says of which models it is: add a figure of the kind {' or '.join(kinds)}."
        )
