from dataclasses import replace
from functools import cache

from tests.helpers.studies import figure_of
from vitscope.data import opening
from vitscope.jobs.job import JOBS, Request, Takes, find_job
from vitscope.measures import registry
from vitscope.networks.building.family import family_names
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


@cache
def everything() -> Study:
    """Return a study with a source, a model and a figure of every kind, each named by its kind.

    There is a video of each model, of its name.
    """
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    model, data = mini.models["vit"], mini.data["shapes32"]
    video = mini.videos["walk"]
    groups = {1: [], 2: [("vit", "resnet")], 3: [("vit", "resnet", "swin")]}
    return replace(
        mini,
        training=mini.training and replace(mini.training, snapshots=[3]),
        data={kind: replace(data, source={"kind": kind}) for kind in opening.source_kinds()},
        models={name: replace(model, family=name, history=None) for name in family_names()}
        # Build-ups begin with it.
        | {"resnet": mini.models["resnet"]},
        videos={name: replace(video, model=name) for name in family_names()},
        figures={
            name: figure_of(name, ["vit"], groups[registry.declared(kind.measure).models])
            for name, kind in registry.kinds().items()
        },
    )


def kinds() -> list[tuple[str, dict[str, str]]]:
    """Return every kind of job with what it can be about, apart from the family of its model."""
    return [(name, chosen) for name in JOBS for chosen in _choices(name)]


def takes_of(name: str) -> list[Takes]:
    """Return what jobs of a kind take, whatever they are about."""
    study, job = everything(), find_job(name)
    return [job.takes_of(Request(study, chosen)) for chosen in _choices(name)]


def _choices(name: str) -> list[dict[str, str]]:
    measures = {each: registry.declared(each) for each in registry.names()}
    of_model = {"model": "vit", "part": "0"}
    if name == "measure":
        measured = [each for each, m in measures.items() if m.needs != "parts"]
        return [of_model | {"measure": each, "snapshot": "end"} for each in measured]
    if name == "merge":
        merged = {1: "vit", 2: "vit+resnet"}
        return [
            {"measure": each, "model": merged[m.models]}
            for each, m in measures.items()
            if m.in_parts
        ]
    if name == "tabulate":
        return [{"table": each} for each in (*measures, "blocks")]
    if name == "draw_figure":
        return [{"figure": kind} for kind in registry.kinds()]
    if name == "export_figure":
        # It does the same for every kind.
        return [{"figure": "feature_variance"}]
    if name in ("build_split", "fetch_archive", "fetch_file"):
        return [{"dataset": kind, "split": "test"} for kind in opening.source_kinds()]
    others = {"video": "vit", "buildup": "fig12a", "split": "test"}
    others |= {"container": "npz"}
    if name == "train_model":
        return [{"model": "vit"}, {"buildup": "fig12a"}]
    steps = {"decide_step", "measure_step", "measure_bundled", "tabulate_buildup", "draw_buildup"}
    return [{"buildup": "fig12a"} if name in steps else of_model | others | {"epoch": "3"}]
