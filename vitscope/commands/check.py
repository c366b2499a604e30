"""Check the models of a study: print and prove their cut points, and read their weights."""

import re
import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from vitscope.commands.workflow import add_study_argument, asked_for
from vitscope.errors import VitscopeError, nearest, quoted
from vitscope.package_data import ROOT

if TYPE_CHECKING:
    from vitscope.settings.study import Study


def add_arguments(parser: ArgumentParser) -> None:
    add_study_argument(parser)
    parser.add_argument(
        "models", nargs="*", metavar="MODEL", help="models to check; if left out, all"
    )
    parser.add_argument(
        "--without-code",
        action="store_true",
        help="run no code that the study names: of a model of the family python, only its files "
        "are looked at",
    )


def run(arguments: Namespace) -> None:
    """Print the cut points of each model and a verdict; exit with 1 if anything is wrong."""
    asked = asked_for(arguments.study)
    study = asked.read_study()
    trainings = Path(asked.folders["results"], study.name, "training")
    checks = dict.fromkeys(_models_to_check(study, arguments.models), _check_cut_points)
    if arguments.without_code:
        own = [name for name in checks if study.models[name].family == "python"]
        checks |= dict.fromkeys(own, _check_without_code)
    lines = {name: check(study, name, trainings) for name, check in checks.items()}
    lines |= _check_data_files(study) | _check_claims(study)
    if not arguments.without_code:
        lines |= _check_own_measures(study)
    for name, (verdict, text) in lines.items():
        print(f"{name}: {verdict}: {text}")
    if any(verdict == "wrong" for verdict, _ in lines.values()):
        sys.exit(1)


def _models_to_check(study: "Study", named: list[str]) -> list[str]:
    for name in named:
        if name not in study.models:
            raise VitscopeError(
                f"{study.path}: found the model {quoted(name)}, allowed: "
                f"{', '.join(study.models)}.{nearest(name, study.models)}"
            )
    return named or study.own_models


def _check_data_files(study: "Study") -> dict[str, tuple[str, str]]:
    """Return a verdict for each data set that figures need and whose files are missing."""
    from vitscope.data.opening import archive_needed, local_files
    from vitscope.jobs.provenance import splits_to_report

    wrong = {}
    for dataset, split in splits_to_report(study):
        source = study.data[dataset].source
        try:
            if not archive_needed(source):
                local_files(f"data.{dataset}.source", source, split, study.path)
        except VitscopeError as error:
            wrong[f"data.{dataset}"] = ("wrong", str(error))
    return wrong


def _check_claims(study: "Study") -> dict[str, tuple[str, str]]:
    """Return a verdict for each measure with too few batches to decide a claim of the study."""
    from vitscope.measures import registry
    from vitscope.measures.measure import Case

    measures, wrong = registry.of(study), {}
    for name in study.measures():
        measure = measures.declared(name)
        figures = [figure for figure in study.figures_of(name) if not figure.by_epoch]
        kinds = [measures.kinds()[figure.kind] for figure in figures]
        models = study.models_of(name)
        if measure.decides and models and any(kind.claims for kind in kinds):
            try:
                measure.decides(Case(measure, study, models[0]))
            except VitscopeError as error:
                wrong[f"claims of {name}"] = ("wrong", str(error))
    return wrong


def _check_own_measures(study: "Study") -> dict[str, tuple[str, str]]:
    """Import the files of the study's own measures; return a verdict for each that is wrong."""
    from vitscope.measures import registry
    from vitscope.measures.own.compute import check_call_of_measure

    measures, wrong = registry.of(study), {}
    for name in study.own_measures:
        try:
            check_call_of_measure(**measures.declared(name).measuring(study, "", 0))
        except VitscopeError as error:
            wrong[f"measures.{name}"] = ("wrong", str(error))
    return wrong


def _training_seed(study: "Study", name: str, trainings: Path) -> int | None:
    """Return a model's training seed if the workflow has yet to train the model, else None."""
    path = Path(study.models[name].checkpoint.get("path", ""))
    if path.exists() or not path.is_relative_to(trainings):
        return None
    trained = path.relative_to(trainings).parts[0]
    return study.recipe(trained).seed if trained in study.models else None


def _check_without_code(study: "Study", name: str, trainings: Path) -> tuple[str, str]:
    """Read a model's checkpoint without running the model's code; return a verdict and why."""
    from vitscope.networks.checkpoints import weight_sources
    from vitscope.networks.checkpoints.foreign import read_foreign

    checkpoint, code = study.models[name].checkpoint, study.models[name].arch
    where = f"{study.path}: models.{name}.checkpoint"
    said = f"{code.get('file', code.get('module'))} is read as text alone"
    if "made" in checkpoint or _training_seed(study, name, trainings) is not None:
        return "not run", said
    try:
        source = weight_sources.local_file(where, checkpoint, ROOT, study.path)
        places = read_foreign(source, name, key=checkpoint.get("key")).places if source else ()
    except VitscopeError as error:
        return "wrong", str(error)
    weights = [f"its checkpoint has {len(place.weights)} weights" for place in places[:1]]
    return "not run", "; ".join([said, *weights])


def _check_cut_points(study: "Study", name: str, trainings: Path) -> tuple[str, str]:
    """Print a model's cut points; return a verdict on them, and why.

    `trainings` is the folder in which the workflow trains the models of the study.
    """
    from vitscope.networks.building import own_code
    from vitscope.networks.running.checking import check_network

    entry = study.models[name]
    try:
        seed = _training_seed(study, name, trainings)
        checked = check_network(
            name, study.network(name), entry.read_at(), entry.checkpoint, study.path, ROOT, seed
        )
    except VitscopeError as error:
        # Remove the name of the model, with which the printed line begins anyway.
        return "wrong", re.sub(rf"^(models\.)?{re.escape(name)}: ", "", str(error))
    except Exception as error:
        if sentence := own_code.explain_network_code_failure(error):
            return "wrong", sentence
        raise
    rows = checked.rows()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    print(f"{name} ({entry.label})", *(f"  {line}" for line in lines), "", sep="\n")
    if checked.proofs.wrong:
        return "wrong", "; ".join(checked.proofs.wrong)
    return "right", checked.summary()
