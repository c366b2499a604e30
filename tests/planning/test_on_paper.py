"""The tables of docs/scale.md: by closed forms of a ViT, and by passes that are counted by hand."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.on_paper import GPUS, STUDY
from tests.helpers.tiers import some_of
from vitscope.jobs.measures import measures_in_pass_job
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.planning.costs import START_WITH_TORCH, count_network
from vitscope.studies.loading import load_study

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
ON_PAPER = PAGE.partition("\n## On paper")[2].partition("\n## ")[0]
RATE, IMAGES, SHARDS, CLASSES, SIDE = 1e13, 50_000, 391, 1000, 224


class Vit(NamedTuple):
    """A ViT with a class token: channels, blocks, side of a patch, and width of its MLPs."""

    channels: int
    depth: int
    patch: int
    hidden: int

    @property
    def patches(self) -> int:
        return (SIDE // self.patch) ** 2

    @property
    def parameters(self) -> int:
        d, h = self.channels, self.hidden
        block = 4 * d * d + 4 * d + 2 * d * h + h + d + 4 * d
        patches = 3 * self.patch**2 * d + d
        around = d + (self.patches + 1) * d + 2 * d + CLASSES * (d + 1)
        return patches + around + self.depth * block

    @property
    def operations(self) -> int:
        d, tokens = self.channels, self.patches + 1
        block = tokens * (4 * d * d + 2 * d * self.hidden) + 2 * tokens**2 * d
        return self.patches * 3 * self.patch**2 * d + self.depth * block + CLASSES * d

    @property
    def cut_points(self) -> int:
        return 2 * self.depth + 1

    @property
    def gigabytes(self) -> float:
        """The latents of all images: without the class token, in float32."""
        return IMAGES * 4 * self.cut_points * self.patches * self.channels / 1e9


VITS = {
    "ViT-B/16": Vit(768, 12, 16, 3072),
    "ViT-L/16": Vit(1024, 24, 16, 4096),
    "ViT-g/14": Vit(1408, 40, 14, 6144),
}


def row_of(first: str, cells: int = 6) -> list[str]:
    """Return the row of so many cells whose first cell begins so; the others of it."""
    rows = [row.split(" | ") for row in re.findall(r"^\| (.+) \|$", ON_PAPER, re.MULTILINE)]
    (found,) = (rest for name, *rest in rows if name.split(",")[0] == first and len(rest) == cells)
    return found


@pytest.mark.parametrize("label", some_of(VITS, "ViT-B/16"))
def test_networks_are_counted_as_closed_forms_say(label: str) -> None:
    study, vit = load_study(STUDY), VITS[label]
    (name,) = (name for name, model in study.models.items() if model.label == label)
    found = count_network(study, name)
    assert found.weights == 4 * vit.parameters
    assert found.operations == vit.operations
    assert found.cut_points == vit.cut_points
    assert found.values * 4 * IMAGES == vit.gigabytes * 1e9


@pytest.mark.parametrize("label", VITS)
def test_the_page_says_what_closed_forms_say(label: str) -> None:
    vit = VITS[label]
    assert row_of(label, cells=5) == [
        f"{vit.parameters / 1e6:.1f} M",
        f"{vit.operations / 1e9:.2f}e9",
        str(vit.cut_points),
        f"{1000 * vit.gigabytes / IMAGES:.2f} MB",
        f"{vit.gigabytes:,.0f} GB",
    ]


# Of the kinds that begin a row: jobs, and passes of an image, which may depend on the cut points.
PASSES = {
    "robustness_by_accuracy": (15, lambda vit: 15 * 5 + 1),
    # Nine shares, and the grids of 2, 4, 7, 8 and 14, five draws of each.
    "occlusion": (1, lambda vit: 1 + (9 + 5) * 5),
    "frequency_noise": (1, lambda vit: 1 + 9 * 3),
    "lesion": (1, lambda vit: 1 + vit.cut_points / 4),
    # Batches of 64 images, 200 steps or twice 40, each of six passes.
    "hessian": (16, lambda vit: 16 * 64 * 200 * 6 / IMAGES),
    "hessian_density": (16, lambda vit: 16 * 64 * 2 * 40 * 6 / IMAGES),
    # Of 1,024 images, in bfloat16, and four times the 33 points of claims.
    "landscape": (7, lambda vit: (21 * 21 + 4 * 33) * 1024 * 0.4 / IMAGES),
    "attention_distance": (SHARDS, lambda vit: 1.5),
    "probe": (SHARDS, lambda vit: 1),
    "fit": (1, lambda vit: 1),
    "deletion": (1, lambda vit: 50 * (3 + 8 * 17) / IMAGES),
}


def hours_in(cells: list[str]) -> list[tuple[float, float]]:
    """Return the hours of a row for each network: on one, and on sixteen."""
    return [(float(one), float(most)) for one, most in (cell.split(", ") for cell in cells[-3:])]


# Hours have two digits.
ROUNDED = 0.06


@pytest.mark.parametrize("kind", PASSES)
def test_hours_on_gpus_are_those_of_the_passes(kind: str) -> None:
    jobs, passes = PASSES[kind]
    row = row_of(f"`{kind}`")
    assert row[0] == f"{jobs:,}"
    for vit, (one, most) in zip(VITS.values(), hours_in(row), strict=True):
        seconds = passes(vit) * IMAGES * vit.operations / RATE + jobs * START_WITH_TORCH
        assert one == pytest.approx(seconds / 3600, rel=ROUNDED)
        assert most == pytest.approx(one / min(jobs, GPUS), rel=ROUNDED)


def test_hours_of_feature_maps_are_those_of_passes_and_measures() -> None:
    study = load_study(STUDY)
    (model, *_) = study.models
    rate = sum(measure.seconds_per_gb for measure in measures_in_pass_job(study, model))
    row = row_of("all of feature maps")
    for vit, (one, most) in zip(VITS.values(), hours_in(row), strict=True):
        passes = IMAGES * vit.operations / RATE + SHARDS * START_WITH_TORCH
        assert one == pytest.approx((passes + rate * vit.gigabytes) / 3600, rel=ROUNDED)
        assert most == pytest.approx(one / GPUS, rel=ROUNDED)


def test_the_page_has_every_kind_of_figure() -> None:
    assert [kind for kind in registry.kinds() if f"`{kind}`" not in ON_PAPER] == []


def test_the_study_lies_where_the_page_says() -> None:
    assert f"bench/{STUDY.name}" in ON_PAPER
    assert STUDY.parent == Path(ROOT, "bench")
