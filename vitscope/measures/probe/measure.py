"""Probes: what is read of classes from the vectors of images, by depth."""

from dataclasses import dataclass

from vitscope.errors import VitscopeError
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Measure,
    Merge,
    bootstrap,
    only,
    passes_of_shard,
    refuse_fewer,
    selection,
    together,
)
from vitscope.measures.probe.table import PART, TABLE
from vitscope.settings.section import setting

# Parts of the images, of which each is read by what is fitted on the others.
FOLDS = 5


@dataclass(frozen=True)
class Settings:
    """What is read from vectors at each cut point, of classes and of places."""

    tokens: int = setting(
        4,
        "Tokens of each image that are read by themselves, at places that are drawn for it and "
        "are the same at all cut points.",
        minimum=1,
    )
    neighbours: int = setting(20, "Nearest vectors that vote for a class.", minimum=1)


def _refuse(case: Case) -> None:
    refuse_fewer(case, FOLDS)
    study, model = case.study, case.model
    if study.dataset_of(model).classes is None:
        raise VitscopeError(
            f"{study.path}: a figure of the kind '{case.measure.name}' needs the classes of "
            f"images, and data.{study.models[model].data} has none: leave models.{model} out of it."
        )


PROBE = Measure(
    needs="model",
    table=TABLE,
    part=PART,
    question="How networks classify",
    figures={"probe": FigureKind()},
    settings=Settings,
    arguments=together(selection, only("tokens")),
    takes=passes_of_shard(1),
    shares="shards",
    merge=Merge(together(only("neighbours"), bootstrap), at_cut_points=True),
    about_features=True,
    needs_labels=True,
    refuse=_refuse,
)
