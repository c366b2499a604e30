import inspect
import re
import textwrap
from dataclasses import fields
from pathlib import Path
from runpy import run_path
from types import FunctionType
from typing import Any, get_args

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image
from scipy.stats import kurtosis, spearmanr
from sphinx.util.matching import Matcher

import vitscope
from tests.helpers.claims import variances
from vitscope.claims.claim import in_order
from vitscope.claims.points import Points
from vitscope.claims.report import VERDICTS
from vitscope.jobs.tables import OTHERS, tables
from vitscope.manual.pages import GENERATED, STUDIES, regenerate
from vitscope.manual.pages import PAGES as PAGES_WITH_PARTS
from vitscope.measures import registry
from vitscope.measures.measure import Question
from vitscope.networks.building.family import arch_schema, family_names
from vitscope.networks.building.networks import uninitialized_network
from vitscope.package_data import ROOT
from vitscope.scopes.tables import Tables
from vitscope.studies.loading import BUNDLED_STUDIES, find_studies, load_study, study_schema

SETTINGS = ROOT / "config" / "README.md"
# Figures of a user's own are in no page.
QUESTIONS = [each for each in get_args(Question) if each != "Questions of your own"]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("config/*.md"),
    *ROOT.glob("notebooks/*.md"),
    *ROOT.glob("vitscope/**/*.md"),
    ROOT / "packages" / "vitscope-scans" / "README.md",
]


@pytest.mark.parametrize("path", PAGES_WITH_PARTS, ids=lambda path: path.name)
def test_generated_parts_are_up_to_date(path: Path) -> None:
    text = path.read_text()
    assert regenerate(text) == text, "run `python -m vitscope.manual.pages`"


def _without_comments(page: str) -> str:
    """Return what a reader sees: generated parts and numbers stand between comments."""
    return re.sub("<!--.*?-->", "", page)


def test_every_setting_family_and_table_has_its_part() -> None:
    pages = {path: path.read_text() for path in PAGES_WITH_PARTS}
    parts = {part for text in pages.values() for _, part, _ in GENERATED.findall(text)}
    keys = study_schema()["properties"].items()
    sections = {key for key, schema in keys if schema.get("type") == "object"}
    assert parts == {
        *(
            "config",
            "effect",
            "figures",
            "claims",
            "paper",
            "contrary",
            "study",
            "families",
            "measures",
        ),
        *(f"captions {question}" for question in QUESTIONS),
        *(f"study {key}" for key in sections),
        *(f"table {name}" for name in OTHERS),
        *(f"python {name}" for name in (*vitscope.__all__, "Tables") if name != "__version__"),
    }
    described = re.findall("^## (.+)$", pages[ROOT / "docs" / "tables.md"], re.MULTILINE)
    assert described == [*registry.names(), *OTHERS]
    columns = {
        f"| `{column}` | {type_} | {text.replace('|', chr(92) + '|')} |"
        for table in tables().values()
        for column, (type_, text) in table.columns.items()
    }
    assert columns <= {*pages[ROOT / "docs" / "tables.md"].splitlines()}
    settings = pages[ROOT / "config" / "README.md"]
    assert re.findall("^#### (.+)$", settings, re.MULTILINE) == family_names()
    for name in registry.names():
        declared = registry.declared(name).settings
        for setting in fields(declared) if declared else ():
            assert f"| `{name}.{setting.name}` | " in settings


def test_the_page_of_the_paper_counts_each_claim_and_says_what_training_measured() -> None:
    page = _without_comments((ROOT / "docs" / "paper.md").read_text())
    row = r"^\| MSAs reduce the feature map variance \|.*\| ([^|]*) \| ([^|]*) \|$"
    (columns,) = re.findall(row, page, re.M)
    for column, path in zip(columns, STUDIES.values(), strict=True):
        once = pd.read_csv(path / "claims.csv").drop_duplicates(
            ["model", "versus", "snapshot", "claim"]
        )
        of_claim = once[once["claim"] == "msa_reduces_variance"]
        assert len(of_claim) > 1
        # Trainings of one recipe count once.
        recipe = of_claim["recipe_low"].where(of_claim["trainings"] > 1, of_claim.index)
        counts = of_claim[~recipe.duplicated()]["holds"].value_counts()
        said = [f"{count} {VERDICTS[holds]}" for holds, count in counts.items()]
        assert sorted(each.partition(" (")[0] for each in column.split("; ")) == sorted(said)
        # And in how many blocks of each network, training by training.
        for row in of_claim.to_dict("records"):
            total = f"{row['measured_total']:.0f}"
            name = row["recipe"] if row["trainings"] > 1 else row["model"]
            (listed,) = re.findall(rf"`{name}` ([\d, ]+) of {total}", column)
            assert f"{row['measured_count']:.0f}" in listed.split(", ")
    in_cifar100 = page.partition("## In `cifar100`")[2].partition("\n## ")[0]
    numbers = re.findall(r"\d+ of \d+|\d+\.\d %", in_cifar100)
    assert len(numbers) > 8
    training = " ".join(_without_comments((ROOT / "docs" / "training.md").read_text()).split())
    assert not [number for number in numbers if number not in training]


def test_every_key_of_every_arch_is_explained() -> None:
    for name in family_names():
        assert "additionalProperties" in arch_schema(name), name
        for key, schema in arch_schema(name)["properties"].items():
            assert schema.get("description", "").endswith("."), f"{name}: {key}"


def test_parts_are_written_anew_and_rows_tell_value_default_and_meaning() -> None:
    text = "before\n<!-- generated: study analysis -->\nold\n<!-- end -->\nafter\n"
    first, _, *rows, last = regenerate(text).splitlines()
    assert (first, last, "old" in rows) == ("before", "after", False)
    assert "| `batch_size` | a whole number, from 1 | `64` | Images per forward pass. |" in rows
    assert "| `bootstrap.seed` | a whole number, from 0 | `0` | Seed of the resamples. |" in rows
    choice = regenerate("<!-- generated: families -->\n<!-- end -->")
    assert "\nExactly one of: `depth`; `block` with `blocks`.\n" in choice


def test_the_manual_shows_every_kind_of_figure_above_its_caption() -> None:
    pages = {path.name: path.read_text() for path in (ROOT / "docs" / "figures").glob("*.md")}
    picture = r"!\[([^\]]{9,})\]\(\S+\.png\)\n\n"
    # A second picture shows changes over blocks.
    shown = rf"^## (\w+)\n\n{picture}(?:!\[.+?: the change .+\n\n)?\*\*([^*]+)\.\*\*"
    kinds = {name: re.findall(shown, page, re.MULTILINE) for name, page in pages.items()}
    found = [each for page in kinds.values() for each in page]
    assert sorted(kind for kind, _, _ in found) == sorted(registry.kinds())
    # The text in place of the picture is the title of its caption.
    assert all(text == " ".join(title.split()) for _, text, title in found)
    gallery = (ROOT / "docs" / "figures.md").read_text()
    assert re.findall(r"\]\(figures/(\S+\.md)#(\w+)\)", gallery) == [
        (f"{re.sub(' ', '-', question.lower())}.md", kind)
        for question in QUESTIONS
        for kind, _, _ in kinds[f"{re.sub(' ', '-', question.lower())}.md"]
    ]
    assert not [page for page in pages.values() if "``" in page or "`_" in page]


def test_every_picture_of_a_page_has_a_text_in_its_place() -> None:
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("notebooks/*.md")]
    texts = [
        (page.name, markdown or html)
        for page in pages
        for markdown, html in re.findall(
            r'!\[(.*?)\]\(|<img .*?alt="(.*?)"', page.read_text(encoding="utf-8")
        )
    ]
    assert len(texts) > 2 * len(registry.kinds())
    assert [page for page, text in texts if len(text) < 9] == []
    shown = sum(page.read_text(encoding="utf-8").count("<img ") for page in pages)
    assert shown == sum(page.read_text(encoding="utf-8").count(' alt="') for page in pages)


def test_the_example_of_a_study_is_one(tmp_path: Path) -> None:
    (code,) = re.findall(
        r"```yaml\n# ~/studies/(own.yaml\n.*?)```", SETTINGS.read_text(), re.DOTALL
    )
    name, _, text = code.partition("\n")
    (tmp_path / name).write_text(text)
    (tmp_path / "ours.py").write_text("def our_net(width):\n    ...\n")
    study = find_studies({"study": "own", "studies_dir": str(tmp_path)}, "settings")["own"]
    assert study.images("ours") == 500
    assert study.models_of() == ["ours", "theirs"]


def test_the_example_of_a_build_up_is_a_study(tmp_path: Path) -> None:
    """With its data, its title and a recipe, which the page leaves out."""
    page = (ROOT / "docs" / "buildup.md").read_text()
    (code,) = re.findall(r"\n\n(    buildups:\n.*?)\n\n    snakemake", page, re.DOTALL)
    mini = yaml.safe_load((BUNDLED_STUDIES / "mini.yaml").read_text())
    more = {
        "title": "own",
        "data": {"mine": mini["data"]["shapes32"]},
        "training": mini["training"],
    }
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(more) + textwrap.dedent(code))
    study = load_study(tmp_path / "own.yaml")
    assert [*study.buildups] == ["grown"]
    assert [*study.figures] == ["fig9"]


def test_the_table_of_the_paper_names_the_figures_of_the_default_study() -> None:
    page = (ROOT / "docs" / "figures.md").read_text()
    rows = page.partition("## Every figure of the paper")[2].partition("\n## ")[0]
    named = {*re.findall(r"`(fig[0-9A-Z]\w*)`", rows)}
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    there = {name for name in (*study.figures, *study.buildups) if name.startswith("fig")}
    assert named <= there
    # The share within images is not in the paper.
    assert there - named == {"fig9_images", "fig9_share", "figD1_share"}
    # What the page says of the study `paper`.
    said = rows.partition("[the study `paper`]")[2].partition("of the published")[0]
    of_paper = {re.sub(r"[.]", "", each) for each in re.findall(r"\b[CD]?\.?\d+[abc]?\b", said)}
    figures = load_study(BUNDLED_STUDIES / "paper.yaml").figures
    assert {f"fig{each}" for each in of_paper} == {*figures} & {
        name for name in there if "_" not in name
    }


def test_pictures_in_pages_are_of_studies_that_there_are() -> None:
    named = {
        path.name: Image.open(path).info.get("Study", "").partition(" (")[0]
        for path in (ROOT / "docs" / "images").glob("*.png")
    }
    studies = {path.stem for path in BUNDLED_STUDIES.glob("*.yaml")}
    assert {each for each in named.values() if each} <= studies
    assert named["fig9.png"] == "cifar100"


def test_the_table_of_bundled_networks_has_their_parameters_and_epochs() -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    page = (ROOT / "docs" / "data.md").read_text()
    own = {name: study.models[name] for name in study.own_models}
    named = {each.label: name for name, each in own.items() if not each.interventions}
    found = 0
    for label, parameters, epochs in re.findall(
        r"^\| (.+?)(?:, (?:on|without|of) [^|]+)? \| ([\d,]+) \| (\d+) \| .*%", page, re.MULTILINE
    ):
        name = named[label]
        network = uninitialized_network(study.network(name))
        size = sum(each.numel() for each in network.parameters())
        assert (f"{size:,}", int(epochs)) == (parameters, study.recipe(name).epochs), label
        found += 1
    # Those of the build-up, and the one that a build-up is drawn from, have rows of their own.
    assert found >= len(named) - 2


@pytest.mark.parametrize("page", ["README.md", "docs/own-measures.md"])
def test_the_measure_of_the_pages_is_the_kurtosis_of_each_image(page: str) -> None:
    text = (ROOT / page).read_text().partition('"""Kurtosis')[2]
    code = re.split(r"\n```|\nSave it", text)[0]
    defined: dict[str, Any] = {}
    exec(textwrap.dedent(code.partition("\n")[2]), defined)
    maps = np.random.default_rng(0).exponential(size=(3, 4, 5, 6))
    expected = kurtosis(maps.reshape(3, -1), axis=1, fisher=False)
    np.testing.assert_allclose(defined["measure"](maps), expected, rtol=1e-12)


def test_the_claims_of_the_page_are_counted_block_by_block() -> None:
    page = (ROOT / "docs" / "own-measures.md").read_text()
    (code,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.S) if "CLAIMS" in each)
    defined: dict[str, Any] = {}
    exec(code, defined)
    table = variances("m", ["stem", "msa", "mlp", "msa", "mlp"], [4] * 5, [1, 1.8, 1.7, 1.4, 1.5])
    points = in_order(table.rename(columns={"variance": "value"}), table)
    found = {claim.name: claim.statistic.find(Points(points)) for claim in defined["CLAIMS"]}
    counts = {name: (each.count, each.total) for name, each in found.items() if each.total}
    # MSAs change the value by 0.8 and by -0.3.
    assert counts == {"msa_lightens": (1, 2), "small": (1, 2)}
    assert found["grows"].value == pytest.approx(spearmanr(range(5), points["value"]).statistic)


def test_the_page_of_python_has_what_is_public_as_python_has_it() -> None:
    """Each signature of the page, compiled, has the parameters of the function itself."""
    text = (ROOT / "docs" / "python.md").read_text()
    public = {name: getattr(vitscope, name) for name in vitscope.__all__ if name != "__version__"}
    shown = dict(re.findall(r"<!-- generated: python (\w+) -->\n(.*?)<!-- end -->", text, re.S))
    assert shown.keys() == {*public, "Tables"}
    assert "eval-rst" not in text
    count = 0
    for name, each in {**public, "Tables": Tables}.items():
        assert inspect.getdoc(each) in shown[name]
        for called, signature in re.findall(r"```python\n([\w.]+)(.*?)\n```", shown[name], re.S):
            method = called.partition(".")[2] or "__call__"
            its = getattr(each, method) if isinstance(each, type) else each
            assert inspect.getdoc(its) in shown[name]
            if isinstance(its, property):
                assert signature.startswith(" -> ")
                continue
            defined: dict[str, Any] = {}
            exec(f"from __future__ import annotations\ndef f{signature}: ...", defined)
            expected = [*inspect.signature(its).parameters.values()][isinstance(each, type) :]
            found = inspect.signature(defined["f"]).parameters.values()
            assert [(p.name, p.kind, p.default) for p in found] == [
                (p.name, p.kind, p.default) for p in expected
            ]
            count += 1
    methods = [
        (each, method)
        for each in (*public.values(), Tables)
        for method, its in vars(each).items()
        if isinstance(each, type) and isinstance(its, FunctionType) and method[0] != "_"
    ]
    assert count > 20
    # A method that says the same of a subclass stands once, with what all have in common.
    for each, method in methods:
        same = inspect.getdoc(getattr(each, method)) == inspect.getdoc(
            getattr(Tables, method, None)
        )
        assert (f".{method}(" in shown[each.__name__]) or (
            same and f".{method}(" in shown["Tables"]
        )


def test_what_users_of_other_tools_are_pointed_to_is_there() -> None:
    page = (ROOT / "docs" / "coming-from.md").read_text()
    plotted = {*re.findall(r'plot\("(\w+)"\)', page)}
    assert len(plotted) >= 15
    assert plotted <= registry.kinds().keys()
    assert {*re.findall(r'table\("(\w+)"\)', page)} <= {*registry.names(), *OTHERS}
    rows = re.split(r"^## From ", page, flags=re.MULTILINE)[1:]
    assert [
        len(re.findall(r"^\| ", part.partition("\n## ")[0], re.MULTILINE)) for part in rows
    ] == [7] * 6


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.search(r"^## ([\d.]+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"]
    assert newest
    assert newest[1] == cited == vitscope.__version__


def test_command_lines_give_lists_of_places_as_snakemake_reads_them() -> None:
    (given,) = re.findall(r"--config 'studies_dir=(.*)'", SETTINGS.read_text())
    assert yaml.safe_load(given) == ["own.yaml", "../others"]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_within_the_repository_lead_somewhere(path: Path) -> None:
    is_on_site = Matcher(run_path(str(ROOT / "docs" / "conf.py"))["include_patterns"])
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text()):
        linked = (path.parent / target).resolve()
        assert linked.exists(), target
        if linked.suffix == ".md":
            assert is_on_site(str(linked.relative_to(ROOT))), f"{target} is not on the site"
