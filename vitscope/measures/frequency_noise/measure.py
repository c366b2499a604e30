"""Noise of one frequency, and what it costs in accuracy."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vitscope.errors import VitscopeError
from vitscope.measures.frequency_noise.rings import sides
from vitscope.measures.measure import (
    Case,
    FigureKind,
    Given,
    Measure,
    bootstrap,
    own_settings,
    passes_of,
)
from vitscope.settings.section import setting

if TYPE_CHECKING:
    from vitscope.settings.study import Study


@dataclass(frozen=True)
class Settings:
    """Noise of one frequency, added to normalized images."""

    images: int | None = setting(
        None, "How many images of the split are classified; null for all.", minimum=1
    )
    frequencies: list[float] = setting(
        [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9],
        "The frequencies of the noise, in units of pi.",
        items={"minimum": 0, "maximum": 1},
        minItems=1,
        uniqueItems=True,
    )
    width: float = setting(
        0.1,
        "Half of the width of the ring of frequencies, in units of pi.",
        exclusiveMinimum=0,
        maximum=1,
    )
    eps: float = setting(0.7, "Size of the noise before it is masked.", exclusiveMinimum=0)
    seeds: int = setting(3, "How many times noise is drawn for every image.", minimum=1)


def choose_noise(case: Case) -> Given:
    """Depend on the noise, which images it is added to, and how intervals are made."""
    noise = own_settings(case)
    chosen = {"images": noise.pop("images"), "seed": case.study.analysis.seed}
    return {"chosen": chosen, "noise": noise, "bootstrap": bootstrap(case)}


def count_views(case: Case) -> int:
    """Count a pass without noise, and one for every draw at every frequency."""
    noise: Settings = case.settings
    return 1 + len(noise.frequencies) * noise.seeds


def refuse_frequencies(measure: Measure, study: "Study") -> None:
    """Refuse frequencies of noise that images of a figure do not have."""
    noise = measure.read_settings(study)
    for model in study.models_of(measure.name):
        size = study.dataset_of(model).image_size
        for frequency in noise.frequencies:
            try:
                sides(frequency, noise.width, size)
            except VitscopeError as error:
                raise VitscopeError(f"{study.path}: models.{model}: {error}") from error


MEASURE = Measure(
    needs="model",
    figures={"frequency_noise": FigureKind(published=frozenset({"frequency", "change"}))},
    settings=Settings,
    arguments=choose_noise,
    takes=passes_of(count_views),
    refuse=refuse_frequencies,
)
