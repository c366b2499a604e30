from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.helpers.archives import tar_of
from tests.helpers.pictures import as_png
from tests.helpers.refusals import refusal
from tests.helpers.sources import open_path
from tests.helpers.splits import built
from vitscope.data.sources import cue_conflict
from vitscope.data.split import UNKNOWN_LABEL
from vitscope.errors import VitscopeError
from vitscope.networks.running.predictions import predict, predict_among

# Not in the order of their names, and other files among them.
NAMES = ["truck/truck2-bear1.png", "bear/bear10-bear2.png", "bear/bear1-oven3.png"]
FOLDER = f"texture-vs-shape/{cue_conflict.FOLDER}"


def png(shade: int) -> bytes:
    return as_png(np.full((32, 32, 3), (shade, 2 * shade, 0), np.uint8))


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    images = {name: png(number) for number, name in enumerate(NAMES, 1)}
    files = {f"{cue_conflict.FOLDER}{name}": data for name, data in images.items()}
    others = {"README.md": b"", "stimuli/edges/bear/bear1.png": png(9)}
    path = tmp_path / "some.tar.gz"
    path.write_bytes(tar_of("texture-vs-shape", files | others))
    lines = [f"{sha256(images[name]).hexdigest()}  {name}\n" for name in sorted(NAMES)]
    monkeypatch.setattr(cue_conflict, "DIGEST", sha256("".join(lines).encode()).hexdigest())
    return path


def test_images_come_in_the_order_of_their_names_with_their_cues(archive: Path) -> None:
    source = open_path("cue_conflict", archive, "conflict")
    samples = [*source.samples(np.arange(3))]
    bear, oven, truck = (source.classes.index(name) for name in ("bear", "oven", "truck"))
    assert [each.extra for each in samples] == [(bear, oven), (bear, bear), (truck, bear)]
    assert [each.label for each in samples] == [UNKNOWN_LABEL] * 3
    assert [each.image.getpixel((0, 0))[0] for each in samples] == [3, 2, 1]
    assert len(source.classes) == 16


@pytest.mark.parametrize("change", [{"bear/bear1-oven3.png": png(7)}, {"bear/bear1-cat1.png": b""}])
def test_other_images_are_refused(archive: Path, change: dict[str, bytes]) -> None:
    files = {name: png(number) for number, name in enumerate(NAMES, 1)} | change
    archive.write_bytes(tar_of(FOLDER.rstrip("/"), files))
    assert refusal(open_path, "cue_conflict", archive, "conflict") == (
        f"{archive} does not hold the 1,280 cue-conflict stimuli as they were published in "
        f"stimuli/style-transfer-preprocessed-512: get the archive again, or leave out `path`."
    )
    archive.write_bytes(b"\x1f\x8b nothing")
    with pytest.raises(VitscopeError, match="cannot be read as a tar archive"):
        open_path("cue_conflict", archive, "conflict")


def test_categories_are_those_of_the_authors() -> None:
    """As their code numbers ImageNet's classes, beside their WordNet ids; of two as ranges."""
    categories = cue_conflict.read_cue_conflict_categories()
    few = {
        "airplane": [404],
        "bear": [294, 295, 296, 297],
        "bicycle": [444, 671],
        "boat": [472, 554, 625, 814, 914],
        "bottle": [440, 720, 737, 898, 899, 901, 907],
        "car": [436, 511, 817],
        "cat": [281, 282, 283, 284, 285, 286],
        "chair": [423, 559, 765, 857],
        "clock": [409, 530, 892],
        "elephant": [385, 386],
        "keyboard": [508, 878],
        "knife": [499],
        "oven": [766],
        "truck": [555, 569, 656, 675, 717, 734, 864, 867],
    }
    ranges = [(8, 9), (10, 17), (18, 21), (22, 25), (80, 84), (87, 97), (98, 101), (127, 134)]
    birds = [number for ends in [*ranges, (135, 146)] for number in range(*ends)]
    no_dogs = {192, 204, 227, 242, 251, 258, 260, 264}
    dogs = [number for number in range(152, 269) if number not in no_dogs]
    assert categories == dict(sorted((few | {"bird": birds, "dog": dogs}).items()))
    assert sum(map(len, categories.values())) == 207


def test_a_network_decides_by_the_mean_of_the_probabilities_of_each_category(
    archive: Path, tmp_path: Path
) -> None:
    source = {"kind": "cue_conflict", "path": str(archive)}
    images = built(tmp_path / "split", source, "conflict", classes=1000)
    outputs = images.outputs
    assert outputs == [*cue_conflict.read_cue_conflict_categories().values()]
    logits = torch.randn(50, 1000, generator=torch.Generator().manual_seed(0))
    found = predict_among(logits, outputs).softmax(1).numpy()
    for each, row in zip(logits.double().softmax(1).numpy(), found, strict=True):
        means = np.array([np.mean(each[chosen]) for chosen in outputs])
        np.testing.assert_allclose(row, means / means.sum(), rtol=1e-12)

    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 1000))
    table = predict(
        network, images.batches([0, 1, 2], 2, [0.5], [0.5]), images.labels, None, outputs
    )
    with torch.inference_mode():
        theirs = predict_among(network(images.normalize([0, 1, 2], [0.5], [0.5])), outputs)
    assert table["prediction"].tolist() == theirs.argmax(1).tolist()
    assert table["label"].isna().all()


def test_other_classes_than_those_of_imagenet_are_refused(archive: Path, tmp_path: Path) -> None:
    source = {"kind": "cue_conflict", "path": str(archive)}
    assert refusal(built, tmp_path / "split", source, "conflict", classes=16) == (
        "data.mine.splits.conflict: found 16 classes, allowed: 1000, which the 16 categories of "
        "this source are made of, or null."
    )
    assert built(tmp_path / "split", source, "conflict", classes=None).outputs is None
