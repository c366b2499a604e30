"""Every kind of job that a study can ask for."""

from dataclasses import replace

from tests.helpers.studies import figure_of
from vitscope.data import opening
from vitscope.measures import registry
from vitscope.networks.building.family import family_names
from vitscope.settings.keys import Figure
from vitscope.settings.loading import BUNDLED_STUDIES, load_study
from vitscope.settings.study import Study


def everything() -> Study:
    """Return a study with a source, a model and a figure of every kind, each named by its kind.

    There is a video of each model, of its name.
    """
    mini = load_study(BUNDLED_STUDIES / "mini.yaml")
    model, data = mini.models["vit"], mini.data["shapes32"]
    (video,) = mini.videos.values()
    return replace(
        mini,
        data={kind: replace(data, source={"kind": kind}) for kind in opening.names()},
        models={name: replace(model, family=name, history=None) for name in family_names()},
        videos={name: replace(video, model=name) for name in family_names()},
        figures={kind: _figure(kind) for kind in registry.kinds()},
    )


def _figure(kind: str) -> Figure:
    of_pairs = registry.declared(registry.kinds()[kind].measure).of_pairs
    pairs = [("vit", "resnet")] if of_pairs else []
    return figure_of(kind, ["vit"], pairs)


def choices(rule: str) -> list[dict[str, str]]:
    """Return what a job of a rule can be about, apart from the family of its model."""
    measures = {name: registry.declared(name) for name in registry.names()}
    needs = {
        "measure_latents": "latents",
        "measure_predictions": "predictions",
        "measure_model": "model",
        "measure_loss": "loss",
        "measure_network": "network",
        "measure_weights": "weights",
    }
    if rule in needs:
        return [{"measure": name} for name, m in measures.items() if m.needs == needs[rule]]
    if rule == "merge":
        return [{"measure": name} for name, m in measures.items() if m.in_parts]
    if rule == "tabulate":
        return [{"table": name} for name in (*measures, "blocks")]
    if rule == "draw_figure":
        return [{"figure": kind} for kind in registry.kinds()]
    if rule == "build_split":
        return [{"dataset": kind} for kind in opening.names()]
    return [{}]
