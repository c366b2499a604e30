"""Attention rollout: what the output looks at, through all attention of a network."""

from dataclasses import dataclass
from typing import Literal

from vitscope.measures.measure import Case, FigureKind, Given, Measure, passes_of
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """What the output looks at, as attention rollout has it."""

    images: int = setting(3, "How many images are shown, the first of those measured.", minimum=1)
    heads: Literal["mean", "max", "min"] = setting(
        "mean", "What is taken of the heads of an attention, for each query and key."
    )


def choose_images(case: Case) -> Given:
    """Depend on which images are shown, and how heads are put together."""
    settings = case.settings
    chosen = {"shown": settings.images, "images": case.study.images(case.model)}
    return {"heads": settings.heads, "chosen": chosen | {"seed": case.study.analysis.seed}}


MEASURE = Measure(
    needs="model",
    figures={"attention_rollout": FigureKind()},
    settings=Settings,
    arguments=choose_images,
    # A pass of each image, and the products of attention.
    takes=passes_of(2, batch=1),
    reads_attention=True,
)
