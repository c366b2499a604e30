"""The tables of docs/scale.md: those that are printed, and networks by closed forms of a ViT."""

from pathlib import Path
from typing import NamedTuple

import pytest

from bench.on_paper import STUDY, main
from tests.helpers.tiers import some_of
from vitscope.measures import registry
from vitscope.package_data import ROOT
from vitscope.planning.costs_of_job import count_network
from vitscope.studies.loading import load_study

PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
ON_PAPER = PAGE.partition("\n## On paper")[2].partition("\n## ")[0]
IMAGES, CLASSES, SIDE = 50_000, 1000, 224


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


@pytest.mark.parametrize("label", some_of(VITS, "ViT-B/16"))
def test_networks_are_counted_as_closed_forms_say(label: str) -> None:
    study, vit = load_study(STUDY), VITS[label]
    (name,) = (name for name, model in study.models.items() if model.label == label)
    found = count_network(study, name)
    assert found.weights == 4 * vit.parameters
    assert found.operations == vit.operations
    assert found.cut_points == vit.cut_points
    assert found.values * 4 * IMAGES == vit.gigabytes * 1e9


@pytest.mark.nightly
def test_the_page_has_the_tables_that_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["on_paper"])
    main()
    *tables, quick = capsys.readouterr().out.rstrip().split("\n\n")
    assert len(tables) == 4
    assert [table for table in tables if f"\n\n{table}\n\n" not in ON_PAPER] == []
    assert f"less than 0.02 hours: {quick.partition(': ')[2]}. " in ON_PAPER


def test_the_page_has_every_kind_of_figure() -> None:
    assert [kind for kind in registry.kinds() if f"`{kind}`" not in ON_PAPER] == []


def test_the_study_lies_where_the_page_says() -> None:
    assert f"bench/{STUDY.name}" in ON_PAPER
    assert STUDY.parent == Path(ROOT, "bench")
