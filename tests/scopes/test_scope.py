import os
import pickle
import pty
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import Tensor, nn

import vitscope
from tests.helpers.attending import found_in, weights_of
from tests.helpers.kinds import timm
from tests.helpers.processes import python
from tests.helpers.refusals import refusal
from tests.networks.running.test_predictions import Noise
from tests.scopes.networks import (
    SIZE,
    Convolutions,
    Transformer,
    labels,
    looked_at,
    network,
    pixels,
)
from vitscope.errors import VitscopeError
from vitscope.scopes.scope import Scope
from vitscope.studies.loading import load_study


@pytest.fixture(scope="module")
def scope() -> Scope:
    return looked_at(name="mine")


def test_it_shows_where_it_reads(scope: Scope) -> None:
    page = scope._repr_html_()
    assert page.count("<svg") == 1
    assert "<title>Blocks of mine, and their multiply-adds</title>" in page
    for name in scope.blocks["name"]:
        assert f"<td>{name}</td>" in page
    assert "feature_variance" in repr(scope)
    assert "feature_variance" in dir(scope)


def test_a_notebook_is_told_what_a_figure_shows(scope: Scope) -> None:
    shell = InteractiveShell.instance()
    try:
        shown = {
            "Feature map variance by depth": scope.plot("feature_variance"),
            "What is measured of mine by depth, and verdicts": scope.overview(),
        }
        for text, figure in shown.items():
            data, about = shell.display_formatter.format(figure)
            assert data["image/png"].startswith(b"\x89PNG")
            assert about["image/png"] == {"alt": text}
    finally:
        InteractiveShell.clear_instance()


def test_drawn_in_axes_that_are_given(scope: Scope) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    size = figure.get_size_inches().tolist()
    try:
        for kind in ("feature_variance", "cka", "attention_nmi"):
            assert scope.plot(kind, ax=left) is figure
        assert scope.plot("frequency_noise", ax=right) is figure
        assert left.get_ylabel()
        assert right.get_legend() is not None
        assert figure.get_size_inches().tolist() == size
        assert "2 panels, and cannot be drawn in axes" in refusal(scope.plot, "fourier", ax=left)
        assert "laid out as a whole" in refusal(scope.plot, "robustness", ax=left)
        for kind in ("attention_heads", "attention_query", "attention_rollout"):
            with pytest.raises(VitscopeError, match=r"axes that are given|laid out as a whole"):
                scope.plot(kind, ax=left)
    finally:
        plt.close(figure)


def test_tables_of_attention_are_of_what_is_read(scope: Scope) -> None:
    """Two heads in each of two blocks, against a pass of the images as the network takes them."""
    model = network().eval()
    attentions = found_in(model, SIZE).attentions
    images = (pixels().float() / 255 - 0.5) / 0.25
    table = scope.attention
    heads = table[table["head"].notna()]
    for number, read in enumerate(weights_of(model, attentions, images)):
        logs = read.clamp_min(1e-30).log()
        expected = -(read * logs).sum(-1).mean((0, 1, 3))
        found = heads[heads["attention"] == number]["entropy"]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert (table["images"] == len(images)).all()
    assert scope.attention_rollout["of"].unique() == ["mean of queries"]
    assert {*scope.attention_maps["shows"]} == {"heads", "queries"}


def brightest(maps, factor=1):
    return np.multiply(factor, maps.max(axis=(1, 2, 3)))


def test_a_function_of_your_own_is_a_measure(scope: Scope) -> None:
    table = scope.measure(brightest, factor=2)
    by_hand = {name: 2 * maps.max(axis=(1, 2, 3)).mean() for name, maps in scope.maps()}
    assert dict(zip(table["name"], table["value"], strict=True)) == pytest.approx(by_hand)
    assert [*by_hand] == scope.blocks["name"].tolist()
    pd.testing.assert_frame_equal(scope.table("brightest"), table, check_exact=True)
    assert not [name for name in table if name.endswith("_resampled")]
    (axes,) = scope.plot("brightest").axes[:1]
    assert axes.get_xlim() == (0, 1)

    def cka(maps):
        return maps

    assert "give the function another name" in refusal(scope.measure, cka)
    with pytest.raises(VitscopeError, match="brightest returned values of the shape"):
        scope.measure(brightest, factor=[[1], [2]])


def test_pickled_it_is_the_same(scope: Scope) -> None:
    scope.measure(brightest, factor=2)
    measured = scope.feature_variance
    again = pickle.loads(pickle.dumps(scope))
    assert again._folder.name != scope._folder.name
    # What was measured came along, and what was not is measured from the same images.
    assert again._maker.path("feature_variance").is_file()
    for name in ("feature_variance", "brightest", "token_similarity"):
        pd.testing.assert_frame_equal(again.table(name), scope.table(name), check_exact=True)
    assert (again.name, again.notes) == ("mine", scope.notes)
    assert vitscope.compare({"a": scope, "b": again}).brightest["model"].nunique() == 2
    assert len(again.feature_variance) == len(measured)


def test_what_is_not_saved_leaves_nothing(scope: Scope, tmp_path: Path) -> None:
    kept = tmp_path / "study" / "network.txt"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(VitscopeError, match="The network cannot be built again as"):
        scope.save(kept.parent, Transformer, depth=1)
    nowhere = eval("lambda: None", {"__name__": "builtins"})
    with pytest.raises(VitscopeError, match="is defined in no file and no notebook"):
        scope.save(tmp_path / "new" / "study", nowhere)
    assert [*tmp_path.rglob("*")] == [kept.parent, kept]


SCRIPT = """
from __future__ import annotations

import sys
from pathlib import Path

import torch
import vitscope
from vitscope.errors import VitscopeError
from width_of_script import Stem

DEPTH = 2
{constant}

class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = Stem()
        self.blocks = torch.nn.ModuleList(Block() for _ in range(DEPTH))
        self.head = torch.nn.Linear(CHANNELS, 5)

    def forward(self, images):
        maps = self.stem(images)
        for block in self.blocks:
            maps = maps + block(maps)
        return self.head(maps.mean((2, 3)))


class Block(torch.nn.Sequential):
    def __init__(self) -> None:
        super().__init__(torch.nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1), torch.nn.ReLU())


with open("runs.txt", "a") as file:
    file.write("trained\\n")
pixels = torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8)
try:
    print(vitscope.look(Net().eval(), pixels, mean=0, std=1, name="net").save("saved", **{given}))
except VitscopeError as error:
    sys.exit(str(error))
"""
STEM = """
import torch


class Stem(torch.nn.Conv2d):
    def __init__(self):
        super().__init__(3, 8, 4, 4)
"""


def run_script(folder: Path, **parts: str) -> "subprocess.CompletedProcess[str]":
    (folder / "width_of_script.py").write_text(STEM)
    (folder / "my-script.py").write_text(SCRIPT.format(**parts))
    command = [sys.executable, "my-script.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("given", ["{}", "{'make': Net}"])
def test_a_script_that_trains_is_saved_and_not_run_again(tmp_path: Path, given: str) -> None:
    done = run_script(tmp_path, constant="CHANNELS = 8", given=given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs.txt").read_text() == "trained\n"
    files = {path.name for path in (tmp_path / "saved").iterdir()}
    own = {"my-script_network.py", "width_of_script.py"}
    assert files == {*own, "images.npz", "weights.safetensors", "saved.yaml"}
    # In a folder of another name, without the script beside it.
    moved = (tmp_path / "saved").rename(tmp_path / "elsewhere")
    model = load_study(moved / "saved.yaml").models["net"]
    assert (model.family, model.arch["make"]) == ("python", "Net")
    assert Path(model.arch["file"]).resolve() == moved / "my-script_network.py"


def test_what_a_script_computes_is_not_saved(tmp_path: Path) -> None:
    done = run_script(tmp_path, constant="CHANNELS = sum([4, 4])", given="{}")
    assert "my-script_network.py, line " in done.stderr
    assert "name 'CHANNELS' is not defined" in done.stderr
    assert done.stderr.strip().endswith(
        "Of a script or notebook, imports, definitions and plain constants are saved: move what "
        "else the network needs to a module of its own, and import it from there."
    )
    assert not (tmp_path / "saved").exists()


def test_points_that_are_named() -> None:
    points = [{"module": "blocks.0"}, {"module": "blocks.1"}]
    scope = vitscope.look(network(), pixels(), mean=0, std=1, points=points)
    assert scope.blocks["name"].tolist() == ["blocks.0", "blocks.1"]


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"points": [{"modul": "x"}]}, "look: points.0.modul: unknown key.* Did you mean 'module'"),
        ({"analysis": {"lesions": {}}}, "look: analysis.lesions: unknown key.* mean 'lesion'"),
        ({"analysis": {"images": 99}}, "analysis.images: found 99, allowed: at most 12"),
        ({"loss": {"decay": 1}}, "look: loss.decay: unknown key"),
    ],
)
def test_settings_that_there_are_not(more: dict, sentence: str) -> None:
    with pytest.raises(VitscopeError, match=sentence):
        looked_at(**more)


def test_a_network_without_classes() -> None:
    features = network(Convolutions)
    features.forward = lambda images: features.branches[0](maps := features.stem(images)) + maps
    scope = vitscope.look(features, pixels(), labels(), mean=0, std=1)
    assert scope.feature_variance["kind"].tolist() == ["stem", "conv"]
    with pytest.raises(VitscopeError, match="classification needs a network that tells classes"):
        scope.table("classification")


def test_a_network_of_timm() -> None:
    arguments = {"img_size": 16, "patch_size": 4, "depth": 1, "embed_dim": 12, "num_heads": 2}
    model = timm("vit_tiny_patch16_224", **arguments)
    scope = vitscope.look(model, pixels(), labels())
    assert scope.blocks["kind"].tolist() == ["stem", "msa", "mlp"]
    assert scope.notes == [
        "images: mean (0.5, 0.5, 0.5) and std (0.5, 0.5, 0.5), as the network was trained"
    ]


LESIONS = """
from tests.scopes.networks import looked_at
scope = looked_at()
scope.lesion, scope.feature_variance
"""


def test_a_log_has_no_progress_bars(capfd: pytest.CaptureFixture[str]) -> None:
    exec(LESIONS, {})
    assert capfd.readouterr().err == ""


def test_a_terminal_has_progress_bars_and_is_clean_afterwards() -> None:
    terminal, end = pty.openpty()
    termios.tcsetwinsize(end, (24, 100))
    with subprocess.Popen([sys.executable, "-c", LESIONS], stderr=end) as process:
        os.close(end)
        shown = b""
        with suppress(OSError):
            # A terminal whose other end is closed has an error in place of an end.
            while part := os.read(terminal, 1 << 16):
                shown += part
    os.close(terminal)
    assert process.returncode == 0
    assert b"lesion: " in shown
    assert b"feature maps:   0%" in shown
    assert shown.decode().rsplit("\r", 1)[-1].strip() == ""


MEMORY = """
import resource, torch, vitscope
from torch.utils.data import DataLoader
from tests.scopes.networks import labels, network

class Images(torch.utils.data.Dataset):
    def __len__(self): return {count}
    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        return torch.rand(3, 16, 16, generator=generator), index % 5

loader = DataLoader(Images(), batch_size=50)
scope = vitscope.look(network(), loader, mean=0.5, std=0.25)
scope.feature_variance, scope.classification
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.nightly
def test_a_loader_takes_the_memory_of_a_batch() -> None:
    codes = (MEMORY.format(count=count) for count in (500, 10_000))
    peaks = [int(python(code).split()[-1]) for code in codes]
    # KiB: the images alone would take 30 MB as float32.
    assert peaks[1] - peaks[0] < 12_000, peaks


def test_latents_are_written_for_others(scope: Scope, tmp_path: Path) -> None:
    found = np.load(scope.latents(tmp_path / "maps.npz"))
    for name, maps in scope.maps():
        np.testing.assert_array_equal(found[f"maps/{name}"], maps)
    assert found["name"].tolist() == scope.table("blocks")["name"].tolist()
    assert found["labels"].tolist() == labels().tolist()
    assert "allowed: npz, h5, zarr.zip" in refusal(scope.latents, tmp_path / "maps.pkl")


def test_passes_that_differ_are_among_the_warnings(capsys: pytest.CaptureFixture[str]) -> None:
    scope = looked_at(network(Noise))
    (warning,) = scope.warnings
    assert warning.startswith("two passes of the same images differ, from the module 'stem' on")
    assert f"vitscope: warning: {warning}" in capsys.readouterr().out
    assert looked_at(network(Convolutions)).warnings == []


class ThroughNumPy(Convolutions):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(torch.from_numpy(images.numpy() * 2))


UNFIT: dict[str, tuple[Callable[[], Any], str]] = {
    "no network": (lambda: looked_at([]), "`model` is a list, allowed: a"),
    # Nothing tells where its tokens lie.
    "no cut points": (
        lambda: looked_at(nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))),
        "points",
    ),
    "no attention": (
        lambda: looked_at(Convolutions()).attention,
        "takes a network that attends: no attention was fou",
    ),
    "an unknown device": (
        lambda: looked_at(device="gpu"),
        "^device: found 'gpu', which this machine or its torch does not have, allowed: 'cpu'",
    ),
    "a device that is not there": (
        lambda: looked_at(device="cuda:99"),
        "^device: found 'cuda:99', which this machine",
    ),
    "no values": (lambda: looked_at(network().to("meta")), "tensors on torch's meta device, which"),
    "blocks without values": (
        lambda: vitscope.blocks(network().to("meta"), torch.zeros(2, 3, 16, 16)),
        "tensors on torch's meta device",
    ),
    "NumPy": (
        lambda: looked_at(network(ThroughNumPy)),
        "compute with torch what it computes with NumPy",
    ),
    "a measure without an argument": (
        lambda: looked_at().measure(lambda: 1.0),
        "is called with what it measures and takes nothing: too many positional arguments",
    ),
    "a measure with another keyword": (
        lambda: looked_at().measure(lambda maps: maps.mean((1, 2, 3)), power=2),
        "is called with what it measures, power and takes maps: got an unexpected keyword",
    ),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_what_cannot_be_looked_at_ends_in_a_sentence(kind: str) -> None:
    look, sentence = UNFIT[kind]
    with pytest.raises(VitscopeError, match=sentence):
        look()
