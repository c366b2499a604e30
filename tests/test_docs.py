"""The documentation: generated parts are up to date, examples work, links lead somewhere."""

import re
import textwrap
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import pytest
import yaml

import vitscope
from tests.helpers.own_network import MY_NET
from vitscope.data.building import build
from vitscope.measures import rooms
from vitscope.networks.block_table import BLOCKS
from vitscope.networks.blocks import list_blocks
from vitscope.networks.conversion import convert
from vitscope.networks.empty import empty_network
from vitscope.networks.family import arch_schema, family_names
from vitscope.package_data import ROOT
from vitscope.settings.generated_docs import GENERATED, regenerated
from vitscope.settings.generated_docs import PAGES as PAGES_WITH_PARTS
from vitscope.settings.loading import load_config, load_study, study_schema
from vitscope.workflow.tables import OTHERS, tables

SETTINGS = ROOT / "config" / "README.md"
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("config/*.md"),
    *ROOT.glob("vitscope/**/*.md"),
]


@pytest.mark.parametrize("path", PAGES_WITH_PARTS, ids=lambda path: path.name)
def test_generated_parts_are_up_to_date(path: Path) -> None:
    text = path.read_text()
    assert regenerated(text) == text, "run `python -m vitscope.settings.generated_docs`"


def test_every_setting_family_and_table_has_its_part() -> None:
    pages = {path: path.read_text() for path in PAGES_WITH_PARTS}
    parts = {part for text in pages.values() for _, part, _ in GENERATED.findall(text)}
    sections = {key for key, schema in study_schema()["properties"].items() if set(schema) - SCALAR}
    assert parts == {
        "config",
        "captions",
        "figures",
        "claims",
        "study",
        *(f"study {key}" for key in sections),
        "families",
        "measures",
        *(f"table {name}" for name in OTHERS),
    }
    described = re.findall("^## (.+)$", pages[ROOT / "docs" / "tables.md"], re.MULTILINE)
    assert described == [*rooms.names(), *OTHERS]
    columns = {
        f"| `{column}` | {type_} | {text.replace('|', chr(92) + '|')} |"
        for table in tables().values()
        for column, (type_, text) in table.columns.items()
    }
    assert columns <= {*pages[ROOT / "docs" / "tables.md"].splitlines()}
    settings = pages[ROOT / "config" / "README.md"]
    assert re.findall("^#### (.+)$", settings, re.MULTILINE) == family_names()
    for name in rooms.names():
        for setting in fields(rooms.declared(name).settings or Nothing):
            assert f"| `{name}.{setting.name}` | " in settings


@dataclass
class Nothing:
    """The settings of a measure that has none."""


SCALAR = {"type", "enum", "default", "description", "pattern", "maxLength", "title"}


def test_every_key_of_every_arch_is_explained() -> None:
    for name in family_names():
        for key, schema in arch_schema(name)["properties"].items():
            assert schema.get("description", "").endswith("."), f"{name}: {key}"


def test_a_part_that_is_out_of_date_is_written_anew() -> None:
    text = "before\n<!-- generated: table training_history -->\nold\n<!-- end -->\nafter\n"
    assert regenerated(text) == (
        "before\n<!-- generated: table training_history -->\n"
        "| column | type | meaning |\n"
        "| --- | --- | --- |\n"
        "| `epoch` | int32 | epochs done |\n"
        "| `loss` | double | mean training loss of the epoch, on augmented images |\n"
        "| `learning_rate` | double | learning rate of the last step |\n"
        "| `test_accuracy` | double | share of test images whose class is found |\n"
        "| `radius` | double | distance to the last weights, over that of the first ones |\n"
        "| `angle` | double | between the ways from the last weights to these and to the first |\n"
        "<!-- end -->\nafter\n"
    )


def test_rows_tell_value_default_and_meaning() -> None:
    rows = regenerated("<!-- generated: study analysis -->\n<!-- end -->").splitlines()
    assert "| `batch_size` | a whole number, from 1 | `64` | Images per forward pass. |" in rows
    assert "| `bootstrap.seed` | a whole number, from 0 | `0` | Seed of the resamples. |" in rows
    choice = regenerated("<!-- generated: families -->\n<!-- end -->")
    assert "\nExactly one of: `depth`; `block` with `blocks`.\n" in choice


def test_a_measure_tells_its_rows_its_columns_and_its_parts() -> None:
    page = regenerated("<!-- generated: measures -->\n<!-- end -->")
    assert (
        "\n## corruption_error\n\n`results/{study}/tables/corruption_error.parquet`: one row per "
        "model and corruption, and one for their mean.\n\n| column | type | meaning |\n" in page
    )
    assert (
        "\nParts, `results/{study}/cka/{model}/{part}.parquet`, are tables `cka_per_shard`:\n\n"
        "| column | type | meaning |\n| --- | --- | --- |\n| `index` | int32 |" in page
    )
    assert "\nIt is not divided by the error of AlexNet.\n" in page.replace(" It is", "\nIt is")


def test_the_example_of_a_study_is_one(tmp_path: Path) -> None:
    (code,) = re.findall(
        r"```yaml\n# ~/studies/(own.yaml\n.*?)```", SETTINGS.read_text(), re.DOTALL
    )
    name, _, text = code.partition("\n")
    (tmp_path / name).write_text(text)
    (tmp_path / "ours.py").write_text("def our_net(width):\n    ...\n")
    default, studies, _ = load_config({"study": "own", "studies_dir": str(tmp_path)}, "settings")
    assert studies[default].images("ours") == 500
    assert studies[default].models_of() == ["ours", "theirs"]


def test_the_example_of_the_readme_is_a_study(tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"    # (my-study.yaml\n(?:    .*\n)+)", text)
    name, _, indented = code.partition("\n")
    (tmp_path / name).write_text(textwrap.dedent(indented))
    (tmp_path / "my_net.py").write_text(MY_NET)
    assert load_study(tmp_path / name).models_of() == ["my_net"]
    # As it says.
    assert indented.count("\n") + 1 == 10
    assert f"figures/{Path(name).stem}/fig9.pdf --config studies_dir={name}" in text


def test_the_notebook_of_the_readme_measures_a_model(tmp_path: Path, monkeypatch) -> None:
    text = (ROOT / "README.md").read_text()
    (code,) = re.findall(r"In a notebook.*:\n\n((?:    .*\n|\n)+)", text)
    monkeypatch.chdir(tmp_path)
    for folder in ("config", "resources"):
        Path(folder).symlink_to(ROOT / folder)
    study = load_study(Path("config/studies/mini.yaml"))
    vit, data = study.models["vit"], study.dataset_of("vit")
    few = asdict(replace(data, splits={"test": replace(data.splits["test"], images=64)}))
    build("shapes32", few, "test", Path("results/mini/data/shapes32/test.safetensors"))
    convert(
        Path(vit.checkpoint["bundled"]),
        study.network("vit"),
        Path("results/mini/checkpoints/vit.safetensors"),
        label="vit",
        origin="bundled",
    )
    network = study.network("vit")
    blocks = list_blocks("vit", empty_network(network), network)
    BLOCKS.write(blocks.table, "results/mini/blocks/vit.parquet", blocks.metadata())
    names: dict[str, dict[str, float]] = {}
    exec(textwrap.dedent(code), names)
    assert len(names["measured"]) == 25
    assert min(names["measured"].values()) > 0


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
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", path.read_text()):
        assert (path.parent / target).exists(), target
