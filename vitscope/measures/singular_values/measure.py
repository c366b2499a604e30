"""Singular values: how many directions the tokens of an image, and whole images, spread along."""

from dataclasses import dataclass

from vitscope.measures.measure import FigureKind, Measure, Merge, bootstrap, own_settings
from vitscope.measures.singular_values.table import PART, TABLE
from vitscope.settings.section import setting


@dataclass(frozen=True)
class Settings:
    """The singular values of tokens and of pooled images."""

    tokens: int = setting(
        256,
        "If a map has more positions and more channels than this, as many positions are "
        "drawn, the same in every image.",
        minimum=2,
    )
    seed: int = setting(0, "Seed of the choice of these positions.", minimum=0)


SINGULAR_VALUES = Measure(
    needs="latents",
    table=TABLE,
    part=PART,
    question="What becomes of tokens",
    figures={"singular_values": FigureKind(), "effective_rank": FigureKind()},
    settings=Settings,
    arguments=own_settings,
    merge=Merge(bootstrap, at_cut_points=True),
    # Of a ViT-Ti on images of CIFAR; what takes the time are eigenvalues, not bytes.
    seconds_per_gb=9.0,
)
