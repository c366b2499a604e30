from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import vitscope
from tests.helpers.refusals import refusal
from tests.scopes.networks import CLASSES, SIZE, labels, network, pixels
from vitscope.errors import VitscopeError
from vitscope.scopes.scope import Scope

MEAN, STD = [0.4, 0.5, 0.6], [0.2, 0.25, 0.3]


class Rowed(Dataset):
    """Images with labels and more, in any arrangement."""

    def __init__(self, arrange: Callable[[Tensor, int, int], Any]) -> None:
        self.arrange = arrange

    def __len__(self) -> int:
        return len(pixels())

    def __getitem__(self, index: int) -> Any:
        return self.arrange(pixels()[index], int(labels()[index]), index)


def picture(image: Tensor) -> Image.Image:
    return Image.fromarray(image.permute(1, 2, 0).numpy())


# As torchvision has them: a picture and its class.
PICTURES = Rowed(lambda image, label, index: (picture(image), label))


class Rows:
    """As Hugging Face has them: a mapping for each image; without an end when it is iterated."""

    def __len__(self) -> int:
        return len(pixels())

    def __getitem__(self, index: int) -> dict[str, Any]:
        image, label = PICTURES[index % len(self)]
        return {"img": image, "fine_label": label}


class Stream(IterableDataset):
    """Images of which nobody knows how many there are."""

    def __iter__(self) -> Iterator[tuple[Tensor, int]]:
        return zip(pixels().float() / 255, labels().tolist(), strict=True)


def normalized() -> Tensor:
    scaled = pixels().float() / 255
    return (scaled - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)


SAME: dict[str, Callable[[], Any]] = {
    "8-bit tensor": pixels,
    "8-bit array": lambda: pixels().numpy(),
    "wider integers": lambda: pixels().to(torch.int32),
    "from 0 to 1": lambda: pixels().float() / 255,
    "from 0 to 1 in double precision": lambda: pixels().double() / 255,
    "from 0 to 255": lambda: pixels().float(),
    "from 0 to 255 in bfloat16": lambda: pixels().bfloat16(),
    "from 0 to 255 in float16": lambda: pixels().half().numpy(),
    "channels last": lambda: pixels().permute(0, 2, 3, 1),
    "loader": lambda: DataLoader(TensorDataset(pixels(), labels()), batch_size=5),
    "loader of images alone": lambda: DataLoader(pixels(), batch_size=5),
    "loader of a stream": lambda: DataLoader(Stream(), batch_size=5),
    "list of pictures": lambda: [*map(picture, pixels())],
    "data set of pictures": lambda: PICTURES,
    "data set of mappings": Rows,
}


def seen(images: Any, given_labels: Any = None, **more: Any) -> Scope:
    return vitscope.look(network(), images, given_labels, MEAN, STD, **more)


@pytest.fixture(scope="module")
def expected() -> pd.DataFrame:
    return seen(pixels()).feature_variance


@pytest.mark.parametrize("kind", SAME)
def test_the_same_images_in_any_form(expected: pd.DataFrame, kind: str) -> None:
    found = seen(SAME[kind]()).feature_variance
    pd.testing.assert_frame_equal(found, expected, check_exact=True)


def test_normalized_images_are_taken_as_they_are(expected: pd.DataFrame) -> None:
    scope = vitscope.look(network(), normalized(), labels())
    pd.testing.assert_frame_equal(scope.feature_variance, expected, check_exact=True)
    assert any("as the network takes them" in note for note in scope.notes)
    assert "robustness needs pixels of 8 bits" in refusal(scope.table, "robustness")


def test_values_between_pixels_are_not_rounded() -> None:
    images = torch.rand(6, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(2))
    found = vitscope.look(network(), images, mean=0, std=1).feature_variance
    direct = network().patches(images).flatten(2).var(2).mean(1).mean().item()
    assert found["variance"][0] == pytest.approx(direct, rel=1e-6)


def test_images_without_labels_are_classified_by_name() -> None:
    names = ["ant", "bee", "cat", "dog", "eel"]
    known, scope = seen(pixels(), labels()).predictions, seen(pixels(), class_names=names)
    found = scope.predictions
    assert found["class_name"].tolist() == [names[number] for number in known["prediction"]]
    np.testing.assert_array_equal(found["confidence"], known["confidence"])
    assert found[["label", "nll", "brier", "top5"]].isna().all(axis=None)
    with pytest.raises(VitscopeError, match=r"^classification needs the classes of the images"):
        scope.table("classification")
    with pytest.raises(VitscopeError, match=r"^probe needs the classes of the images: give labels"):
        scope.table("probe")
    assert set(scope.table("probe_tokens")["target"]) == {"position", "pixels"}
    heads = scope.table("attention_maps").drop_duplicates("image").set_index("image")
    shown = found.set_index("image").loc[heads.index]
    assert heads["class_name"].tolist() == shown["class_name"].tolist()
    np.testing.assert_allclose(heads["confidence"], shown["confidence"], rtol=1e-5)
    sentence = refusal(seen, pixels(), class_names="imagenet")
    assert "class_names has 1000 names and the study says 5 classes" in sentence


def test_a_figure_takes_the_keys_of_its_kind() -> None:
    scope = seen(pixels())
    figure = scope.plot("attention_heads", over=True)
    assert any(len(axes.images) == 2 for axes in figure.axes)
    said = "'attention_heads' have no option 'ower', but over, own_scales. Did you mean 'over'"
    assert said in refusal(scope.plot, "attention_heads", ower=True)


@pytest.mark.parametrize("kind", ["loader", "loader of a stream", "data set of pictures"])
def test_labels_that_come_with_images(kind: str) -> None:
    assert seen(SAME[kind]()).predictions["label"].tolist() == labels().tolist()


@pytest.mark.parametrize(
    "arrange",
    [
        lambda image, label, index: {"input": image, "name": "x", "target": label},
        lambda image, label, index: {"id": index, "labels": label, "pixel_values": image},
        lambda image, label, index: (image, label, index),
        lambda image, label, index: (index, image, label),
        lambda image, label, index: (image, torch.zeros(4), {"box": 1.0}, torch.tensor([label])),
    ],
)
def test_labels_among_more(arrange: Callable[[Tensor, int, int], Any]) -> None:
    rows = Rowed(arrange)
    for images in (rows, DataLoader(rows, batch_size=5)):
        assert seen(images).predictions["label"].tolist() == labels().tolist()


@pytest.mark.parametrize("form", [Tensor.tolist, Tensor.numpy, lambda each: each.to(torch.uint8)])
def test_labels_in_any_form(form: Callable[[Tensor], Any]) -> None:
    assert seen(pixels(), form(labels())).predictions["label"].tolist() == labels().tolist()


def test_a_folder(tmp_path: Path, expected: pd.DataFrame) -> None:
    for index, image in enumerate(pixels()):
        folder = tmp_path / f"class {labels()[index]}"
        folder.mkdir(exist_ok=True)
        picture(image).save(folder / f"{index:02}.png")
    scope = seen(tmp_path, image_size=SIZE)
    found = scope.feature_variance
    # In the order of the classes.
    assert found["variance"].to_numpy() == pytest.approx(expected["variance"].to_numpy(), rel=1e-12)
    assert scope.table("predictions")["label"].tolist() == sorted(labels().tolist())


def test_a_folder_is_asked_about_once(tmp_path: Path) -> None:
    """All that is missing is asked for in one sentence; a size that all have is taken."""
    for number in range(CLASSES - 1):
        (tmp_path / f"class {number}").mkdir()
        Image.new("RGB", (SIZE, SIZE)).save(tmp_path / f"class {number}" / "a.png")
    (tmp_path / "nobody").mkdir()
    names = (
        "class_names=, the names of all 5 classes in the order of the outputs, since there are "
        "folders of 4 and nobody without an image"
    )
    scaling = "mean= and std=, of pixels from 0 to 1 (mean=0, std=1 leaves them)"
    start = f"{tmp_path}: nothing says how the network takes these images: give "
    assert refusal(vitscope.look, network(), tmp_path) == f"{start}{scaling}; {names}."
    given = {"class_names": [*(f"class {number}" for number in range(4)), "nobody"]}
    scope = seen(tmp_path, **given)
    assert scope.study.data["images"].image_size == SIZE
    assert scope.notes == []

    Image.new("RGB", (SIZE, SIZE + 1)).save(tmp_path / "class 0" / "b.png")
    size = "image_size=, to which they are cut, since not all have one size"
    assert refusal(vitscope.look, network(), tmp_path) == (
        f"{start}{scaling}; {size}; class_names=, the names of all classes in the order of the "
        "outputs, if these are not 4, of which there are folders and nobody without an image."
    )
    assert f"these images: give {size}" in refusal(seen, tmp_path, **given)


def test_pictures_of_other_sizes_are_cut() -> None:
    pictures = [Image.new("RGB", (40 + index, 30), (index, 0, 0)) for index in range(4)]
    assert len(seen(pictures, image_size=SIZE).feature_variance) == 5


def test_mean_and_std_of_a_network_that_says_them(expected: pd.DataFrame) -> None:
    told = network()
    told.pretrained_cfg = {"mean": MEAN, "std": STD}
    scope = vitscope.look(told, pixels())
    found = scope.feature_variance.assign(model=expected["model"])
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert any("as the network was trained" in note for note in scope.notes)


WRONG: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "bare pixels": (pixels, {}, "Nothing says how the network takes 8-bit images"),
    "bare pixels as floats": (lambda: pixels().float(), {}, "as pixels have"),
    "normalized twice": (
        normalized,
        {"mean": MEAN, "std": STD},
        "leave mean and std out if they are normalized already",
    ),
    "too large": (lambda: pixels().float() * 3, {"mean": 0, "std": 1}, "from 0 to 255"),
    "one image": (lambda: pixels()[0], {}, r"shape \(3, 16, 16\), allowed: \(N, C, H, W\)"),
    "no image": (lambda: pixels()[:0], {}, "There is no image"),
    "not finite": (lambda: normalized().fill_(np.nan), {}, "not finite"),
    "text": (lambda: np.array([[[["a"]]]]), {}, "allowed: numbers"),
    "a number": (lambda: 3, {}, "`images` is a int, allowed: a tensor"),
    "an unknown mapping": (lambda: [{"x": 1}], {}, r"entries x \(int\), allowed: one of image"),
    "no folder": (lambda: "nowhere", {"mean": 0, "std": 1, "image_size": 16}, "is not a folder"),
    "no folder, and nothing else": (lambda: "nowhere", {}, "^nowhere is not a folder"),
    "no deviation": (pixels, {"mean": 0, "std": 0}, "std is .* allowed: numbers above 0"),
    "means up to 255": (
        pixels,
        {"mean": [123, 116, 103], "std": 1},
        r"^mean: found .* by 255, mean",
    ),
    "deviations up to 255": (pixels, {"mean": 0.5, "std": [58, 57, 57]}, r"^std: found .* by 255"),
    "two means": (pixels, {"mean": [0, 0], "std": 1}, "mean has 2 numbers, allowed: 3"),
    "two kinds": (
        lambda: iter([pixels(), pixels().float()]),
        {"mean": 0, "std": 1},
        "different kinds",
    ),
}


@pytest.mark.parametrize("kind", WRONG)
def test_images_that_cannot_be_meant(kind: str) -> None:
    images, more, sentence = WRONG[kind]
    with pytest.raises(VitscopeError, match=sentence):
        vitscope.look(network(), images(), **more)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (labels() + 1, f"go up to {CLASSES}, allowed: from 0 to {CLASSES - 1}"),
        (labels()[:5], r"shape \(5,\), allowed: whole numbers, one for each of 12"),
        (labels().float(), "The labels are float32"),
        (torch.where(labels() == 1, -1, labels()), "are negative"),
    ],
)
def test_labels_that_cannot_be_meant(given: Tensor, sentence: str) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        seen(pixels(), given)


def test_images_that_the_network_does_not_take() -> None:
    sentence = refusal(vitscope.look, network(), pixels()[:, :1], mean=0, std=1)
    assert "(Transformer) does not take images of the shape 1x" in sentence
