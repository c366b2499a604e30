import re
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.archives import tar_of
from tests.helpers.refusals import refusal
from tests.helpers.shown_sets import CATEGORIES, STEP, decision_on, files_of, write_files
from tests.helpers.sources import open_path
from vitscope.data.shown_images import read_shown_conditions, read_shown_images
from vitscope.data.sources.model_vs_human import SOURCE
from vitscope.errors import VitscopeError
from vitscope.package_data import ROOT
from vitscope.studies.loading import load_study

SETS = SOURCE["keys"]["set"]["enum"]
# Names of images in the published archives, as those who use them quote them.
QUOTED = {
    "contrast": ["0580_cop_dnn_c05_bicycle_10_n03792782_10129"],
    "eidolonI": ["0001_eid_dnn_1-10-10_oven_10_n04111531_17072"],
    "sketch": [
        "0001_ske_dnn_0_airplane_00_airplane-0001-sketch-0",
        "0068_ske_dnn_0_bear_00_bear-0053-sketch-10",
        "0145_ske_dnn_0_bicycle_00_bicycle-0094-sketch-47",
    ],
    "stylized": ["0350_sty_dnn_0_car_00_car-0149-ILSVRC2012-val-00049427"],
    "uniform-noise": [
        "0571_nse_dnn_0.00_bicycle_10_n03792782_1418",
        "0793_nse_dnn_0.10_elephant_10_n02504458_2054",
        "0860_nse_dnn_0.90_bear_10_n02132136_4636",
    ],
}


def packed(path: Path, name: str, files: dict[str, bytes]) -> Path:
    path.write_bytes(tar_of(name, files))
    return path


@pytest.mark.parametrize("name", ["high-pass", "edge"])
def test_images_of_a_folder_and_of_an_archive(name: str, tmp_path: Path) -> None:
    files = files_of(name)
    beside = {"README.md": b"", f"{min(files).rpartition('/')[0]}/._hidden.png": b""}
    folder = write_files(tmp_path / "mine", files | beside)
    archive = packed(tmp_path / "some.tar.gz", name, files | beside)
    shown, conditions = read_shown_images(name), read_shown_conditions(name)
    digests = set()
    for path in (folder, archive):
        source = open_path("model_vs_human", path, set=name)
        samples = [*source.samples(np.arange(len(source)))]
        assert [source.classes[each.label] for each in samples] == shown["category"].tolist()
        found = conditions["condition"][[each.extra[0] for each in samples]]
        assert found.tolist() == shown["condition"].tolist()
        colours = [each.image.getpixel((0, 0)) for each in samples]
        assert [blue for _, blue, _ in colours] == [n % 256 for n in range(len(shown))]
        reds = [decision_on(e.label, e.extra[0], number) for number, e in enumerate(samples)]
        assert [red for red, _, _ in colours] == [STEP * each for each in reds]
        assert source.outputs == [*CATEGORIES.values()]
        digests.add(source.provenance["source_sha256"])
    assert len(digests) == 1


def test_sets_are_those_that_people_were_shown() -> None:
    """90 people made 85,120 decisions (Geirhos et al. 2021), 10 of them on 1,280 images of cues."""
    decisions = [read_shown_images(name)["decisions"] for name in SETS]
    assert sum(each.str.len().sum() for each in decisions) + 10 * 1280 == 85_120
    assert sum(len(each[0]) for each in decisions) + 10 == 90
    for name in SETS:
        shown = read_shown_images(name)
        assert shown["image"].is_unique
        assert (
            shown["condition"].unique().tolist()
            == read_shown_conditions(name)["condition"].tolist()
        )
        # As many images of each category in each condition.
        assert len({*shown.groupby(["condition", "category"]).size()}) == 1
        assert sorted({*shown["category"]}) == [*CATEGORIES]


@pytest.mark.parametrize("name", QUOTED)
def test_names_are_read_as_those_who_use_the_sets_quote_them(name: str, tmp_path: Path) -> None:
    quoted = {f"dnn/session-1/{each}.png": b"" for each in QUOTED[name]}
    archive = packed(tmp_path / "some.tar.gz", name, quoted)
    lacking = len(read_shown_images(name)) - len(quoted)
    said = refusal(open_path, "model_vs_human", archive, set=name)
    assert said.startswith(f"{archive} lacks {lacking} of the {lacking + len(quoted)} images of")


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        (
            "edge",
            {"bear/bear4.png": None},
            "lacks 1 of the 160 images of the set 'edge' that people were shown, as '0 bear bear4'",
        ),
        (
            "edge",
            {"bear/bear11.png": b""},
            "holds 'edge/bear/bear11.png', which is none of the 160 images of the set 'edge' that "
            "people were shown",
        ),
        (
            "edge",
            {"old/bear/bear4.png": b""},
            "holds an image of the set 'edge' twice, as 'edge/{}bear/bear4.png' and as "
            "'edge/{}bear/bear4.png'",
        ),
        (
            "silhouette",
            {},
            "holds 'edge/truck/truck9.png', which is none of the 160 images of the set "
            "'silhouette' that people were shown",
        ),
        (
            "sketch",
            {},
            "holds 'edge/truck/truck9.png', which is none of the 800 images of the set 'sketch' "
            "that people were shown",
        ),
    ],
)
def test_other_images_are_refused(
    name: str, change: dict[str, bytes | None], sentence: str, tmp_path: Path
) -> None:
    files = {file: b for file, b in (files_of("edge") | change).items() if b is not None}
    archive = packed(tmp_path / "some.tar.gz", "edge", files)
    advice = f"give {name}.tar.gz as model-vs-human publishes it, or the folder in it."
    said = sentence.format("", "old/")
    assert refusal(open_path, "model_vs_human", archive, set=name) == f"{archive} {said}: {advice}"


@pytest.mark.parametrize(
    ("session", "who", "condition"), [(2, "dnn", "c05"), (1, "s01", "c05"), (1, "dnn", "c10")]
)
def test_a_second_session_images_of_people_and_another_condition_are_refused(
    session: int, who: str, condition: str, tmp_path: Path
) -> None:
    more = f"dnn/session-{session}/9999_cop_{who}_{condition}_bicycle_10_n03792782_10129.png"
    archive = packed(tmp_path / "some.tar.gz", "contrast", files_of("contrast") | {more: b""})
    said = refusal(open_path, "model_vs_human", archive, set="contrast")
    twice = "an image of the set 'contrast' twice, as"
    other = f"'contrast/{more}', which is none of the 1280 images of the set 'contrast' that"
    assert said.startswith(f"{archive} holds {twice if session == 2 else other}")


def test_another_split_and_what_is_no_archive_are_refused(tmp_path: Path) -> None:
    archive = packed(tmp_path / "some.tar.gz", "edge", {})
    said = refusal(open_path, "model_vs_human", archive, "train", set="edge")
    assert said.startswith("model_vs_human has no split 'train'")
    archive.write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(VitscopeError, match="cannot be read as a tar archive"):
        open_path("model_vs_human", archive, set="edge")


def test_the_study_of_the_manual_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    (code,) = re.findall(
        r"^## model_vs_human\n.*?```yaml\n(.*?)```", page, re.DOTALL | re.MULTILINE
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "high-pass.tar.gz").touch()
    (tmp_path / "own.yaml").write_text(f"title: own\n{code}")
    study = load_study(tmp_path / "own.yaml")
    assert study.models_of("beside_people") == ["resnet"]
