from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.helpers.refusals import refusal
from tests.helpers.studies import BUNDLED, figure_of, mini_with
from vitscope.errors import VitscopeError
from vitscope.planning import targets
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, StudyFiles, find_studies

FOLDERS = {"figures": "figures", "results": "results"}
MINI = BUNDLED_STUDIES / "mini.yaml"
SHOWN = "figures, buildups and videos"
PAPER = BUNDLED_STUDIES / "paper.yaml"


@pytest.fixture(scope="module")
def studies() -> StudyFiles:
    found = find_studies({"study": "mini"}, "settings")
    found.files["own"] = Path("own.yaml")
    found.broken["own"] = VitscopeError("own.yaml: title: found nothing.")
    return found


def refused(studies: StudyFiles, target: str, folders: Mapping[str, str] = FOLDERS) -> str:
    return refusal(targets.check_target, target, studies, folders)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("figures/fgi9.pdf", f"{MINI}: {SHOWN}: found 'fgi9', "),
        ("figures/paper/fgi9.pdf", f"{PAPER}: {SHOWN}: found 'fgi9', "),
        (
            "figures/papre/fig9.pdf",
            f"figures/papre/fig9.pdf: found the study 'papre', allowed: "
            f"{', '.join(sorted([*BUNDLED, 'own']))}. Did you mean 'paper'? A study of your own is "
            f"found by --config studies_dir=FILE, or the folder of the file.",
        ),
        (
            "figures/fig9.jpeg",
            "figures/fig9.jpeg: found 'jpeg' as the format, allowed: pdf, svg, png, csv.",
        ),
        (
            "figures/walk.pdf",
            "figures/walk.pdf: found 'pdf' as the format, allowed: webp, gif, mp4.",
        ),
        (
            "figures/wlak.webp",
            f"{MINI}: videos: found 'wlak', allowed: walk, walk_tokens. Did you mean 'walk'?",
        ),
        ("figures/fig9.webp", f"{MINI}: videos: found 'fig9', allowed: walk, walk_tokens."),
        ("figures/own/fig9.pdf", "own.yaml: title: found nothing."),
        (
            "figures/mini",
            f"figures/mini is a folder: add the name of a figure of {MINI}, as in "
            "figures/mini/fig1a.pdf, or all for all of them.",
        ),
        (
            "studies_dir=own.yaml",
            "studies_dir=own.yaml is a setting and no target: write --config before it, and "
            "targets before that.",
        ),
    ],
)
def test_what_is_unknown_of_a_target_is_refused(
    studies: StudyFiles, target: str, sentence: str
) -> None:
    assert refused(studies, target).startswith(sentence)


@pytest.mark.parametrize(
    ("target", "meant"),
    [
        ("fig9", "figures/fig9.pdf"),
        ("paper/fig9", "figures/paper/fig9.pdf"),
        ("paper/all", "figures/paper/all"),
        ("walk", "figures/walk.webp"),
        ("figures/fig9a.pdf", "fig9"),
        ("figures/paper/blocks_vit_it.pdf", "vit_ti"),
        ("results/mini/tables/landscap.parquet", "landscape.parquet"),
        ("results/mini/tables/landscap.csv", "landscape.csv"),
        ("results/mini/tables/claim.tex", "claims.tex"),
        (str(Path("figures/paper/fgi9.pdf").absolute()), "fig9"),
    ],
)
def test_the_nearest_target_is_named(studies: StudyFiles, target: str, meant: str) -> None:
    assert f" Did you mean '{meant}'?" in refused(studies, target)


def test_what_studies_have_and_what_only_rules_know_is_left_to_snakemake(
    studies: StudyFiles,
) -> None:
    for name in ("mini", "paper"):
        study = studies[name]
        for figure in (*study.figures, *study.buildups):
            targets.check_target(f"figures/{name}/{figure}.pdf", studies, FOLDERS)
        for buildup in study.buildups:
            targets.check_target(f"figures/{name}/{buildup}.webp", studies, FOLDERS)
    shown = ("figures/fig9.csv", "./figures//fig9.svg", "figures/walk.gif", "figures/mini/walk.mp4")
    others = ("all", "merge", "figures/mini/all", "figures/claims.svg", "figures/blocks_vit.pdf")
    others += ("figures/mini/claims_grid.pdf", "figures/mini/overview.png")
    results = ("run.yaml", "tables/claims.md", "tables/fourier.csv", "fourier/vit.parquet")
    results += ("curves.html",)
    for target in (*shown, *others, *(f"results/mini/{each}" for each in results)):
        targets.check_target(target, studies, FOLDERS)


def test_a_figure_may_begin_like_the_page_of_a_model(tmp_path: Path) -> None:
    figures = {"network_of_mine": {"kind": "feature_variance", "models": ["vit"]}}
    own = mini_with(tmp_path, figures=figures)
    studies = find_studies({"study": "own", "studies_dir": str(own)}, "settings")
    targets.check_target("figures/network_of_mine.pdf", studies, FOLDERS)
    assert "found 'of_hers'" in refused(studies, "figures/network_of_hers.pdf")


def test_a_page_that_would_be_empty_is_refused(tmp_path: Path) -> None:
    figures = {"mine": {"kind": "hessian", "models": ["vit"]}}
    own = mini_with(tmp_path, figures=figures, buildups=None)
    found = find_studies({"study": "own", "studies_dir": str(own)}, "settings")
    for page in ("overview", "published"):
        sentence = refused(found, f"figures/own/{page}.png")
        assert sentence == (
            f"figures/own/{page}.png: the page shows the figures that have published points, and "
            f"{own} has none: give one of its figures `published`, or ask for "
            f"figures/own/claims.pdf or figures/own/network_{next(iter(found['own'].models))}.pdf."
        )
    sentence = refused(found, "results/own/curves.html")
    assert f"curves by depth, and {own} has no figure that measures any: add one of" in sentence
    assert "'feature_variance'" in sentence
    for target in ("claims.pdf", "claims_grid.pdf", "network_vit.pdf"):
        targets.check_target(f"figures/own/{target}", found, FOLDERS)
    assert "found 'jpeg' as the format" in refused(found, "figures/own/claims.jpeg")


def test_folders_may_have_other_names(studies: StudyFiles) -> None:
    folders = {"figures": "out/figures", "results": "out"}
    assert "found 'fig99'" in refused(studies, "out/figures/fig99.pdf", folders)
    assert "Did you mean 'out/figures/mini/fig9.pdf'" in refused(studies, "mini/fig9.pdf", folders)
    assert "found the study 'mine', allowed" in refused(studies, "out/mine/run.yaml", folders)


def names_refused(studies: Mapping[str, Study], study: str, **names: str) -> str:
    return refusal(targets.check_target_names, studies[study], names)


def test_names_of_another_study_are_refused(studies: StudyFiles) -> None:
    """A rule may match: its wildcards stand for what any study has."""
    for section, wildcard in ((SHOWN, "figure"), ("models", "model"), ("data", "dataset")):
        sentence = names_refused(studies, "paper", **{wildcard: "mixer_8"})
        assert sentence.startswith(f"{PAPER}: {section}: found 'mixer_8', ")
    sentence = names_refused(studies, "mini", model="vit", snapshot="begin")
    assert sentence == (
        f"{MINI}: models.vit.snapshots: found 'begin', allowed: end, init, "
        "warmup. Did you mean 'end'?"
    )
    for names in ({"dataset": "shapes32"}, {"model": "vit"}):
        sentence = names_refused(studies, "mini", split="tset", **names)
        assert "data.shapes32.splits: found 'tset'" in sentence


def test_a_table_that_no_figure_needs_says_which_would(studies: StudyFiles) -> None:
    mini = studies["mini"]
    fewer = {name: figure for name, figure in mini.figures.items() if figure.measure != "hessian"}
    changed = {"mini": replace(mini, figures=fewer)}
    sentence = (
        f"{MINI}: figures: found none that needs the table 'hessian', so that nothing says of "
        "which models it is: add a figure of the kind 'hessian' or 'hessian_by_batch'."
    )
    assert names_refused(changed, "mini", table="hessian") == sentence
    assert names_refused(changed, "mini", measure="hessian", model="vit") == sentence
    # The same for a model that no such figure shows: at which moments is not known.
    shown = {"one": figure_of("hessian", ["vit"])}
    changed = {"mini": replace(mini, figures=shown)}
    sentence = names_refused(changed, "mini", measure="hessian", model="resnet")
    assert sentence.endswith("found 'resnet', allowed: vit.")


def test_what_a_pass_does_not_measure_is_refused(studies: StudyFiles) -> None:
    shown = {"one": figure_of("mean_token", ["vit"]), "two": figure_of("spectrum", ["vit"])}
    changed = {"mini": replace(studies["mini"], figures=shown)}
    targets.check_target_names(changed["mini"], {"measure": "mean_token", "model": "vit"})
    # Of the same parts as the spectrum.
    targets.check_target_names(changed["mini"], {"measure": "fourier", "model": "vit"})
    sentence = names_refused(changed, "mini", measure="mean_token", model="resnet")
    assert sentence.endswith("found 'resnet', allowed: vit.")
    sentence = names_refused(changed, "mini", measure="cka", model="vit")
    assert "found none that needs the table 'cka'" in sentence
