"""Tables by epoch are those of `look` at each epoch, and no training is disturbed."""

import copy
import pickle
import random
from collections.abc import Callable, Iterator
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import vitscope
from tests.helpers.refusals import refusal
from tests.helpers.registries import Packages, importing_from
from tests.scopes.networks import CLASSES, SIZE
from vitscope.networks.building.timm_import import declare_torchvision_operators
from vitscope.scopes.watching import Watch

IMAGES, EPOCHS = 8, 2
ANALYSIS = {
    "hessian": {"batches": 1, "density_batches": 1, "density_probes": 1, "top": 1},
    "frequency_noise": {"seeds": 1, "frequencies": [0.5]},
}
TABLES = ["feature_variance", "singular_values", "classification"]


class Dropping(nn.Module):
    """A network with dropout and batch normalization, whose training draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.branches = nn.ModuleList(
            nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Dropout(0.2))
            for _ in range(2)
        )
        self.head = nn.Linear(8, CLASSES)

    def forward(self, pixel_values: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        maps = self.stem(pixel_values)
        for branch in self.branches:
            maps = (maps + branch(maps)).relu()
        logits = self.head(maps.mean((2, 3)))
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def seeded(seed: int = 0) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  (what trainings of others use)
    torch.manual_seed(seed)


@pytest.fixture
def network() -> nn.Module:
    seeded()
    return Dropping()


@pytest.fixture
def images() -> Tensor:
    return torch.randn(IMAGES, 3, SIZE, SIZE, generator=torch.Generator().manual_seed(1))


LABELS = torch.arange(IMAGES) % CLASSES


def drawing(maps: Any) -> Any:
    """A measure that draws from every generator."""
    drawn = random.random() + np.random.rand() + float(torch.rand(()))  # noqa: NPY002
    return np.full(len(maps), drawn)


def epochs_of(network: nn.Module, images: Tensor) -> Iterator[int]:
    """Train a network for some epochs, with chance of every kind; yield after each."""
    loader = DataLoader(TensorDataset(images, LABELS), batch_size=4, shuffle=True)
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    for epoch in range(1, EPOCHS + 1):
        network.train()
        for batch, labels in loader:
            noise = random.random() * np.random.rand()  # noqa: NPY002
            network(batch + noise * torch.randn_like(batch), labels)["loss"].backward()
            optimizer.step()
            # The gradients of the last step stay.
            if epoch < EPOCHS:
                optimizer.zero_grad()
        yield epoch


def bits_after_training(network: nn.Module, images: Tensor, watched: Watch | None) -> list[Any]:
    """Train a network, frozen in part; return all that a measurement might change."""
    network.stem.requires_grad_(False)  # type: ignore[union-attr,operator]
    network.branches[0].eval()  # type: ignore[index,operator]
    seeded(2)
    if watched is None:
        [*epochs_of(network, images)]
    else:
        with watched:
            for _ in epochs_of(network, images):
                watched.after_epoch()
    tensors = {name: each.numpy().tobytes() for name, each in network.state_dict().items()}
    drawn = random.random(), np.random.rand(), torch.rand(3).tolist()  # noqa: NPY002
    modules = [*network.modules()]
    grads = [None if p.grad is None else p.grad.tolist() for p in network.parameters()]
    hooks = [(len(each._forward_hooks), len(each._forward_pre_hooks)) for each in modules]
    frozen = [each.requires_grad for each in network.parameters()]
    return [tensors, drawn, [each.training for each in modules], grads, hooks, frozen]


def test_a_training_ends_in_the_same_bits_with_and_without(
    network: nn.Module, images: Tensor
) -> None:
    alone = bits_after_training(copy.deepcopy(network), images, None)
    # Images come of a loader with chance of its own, and tables need passes, gradients and chance.
    mixed = torch.Generator().manual_seed(3)
    loader = DataLoader(TensorDataset(images, LABELS), 4, shuffle=True, generator=mixed)
    before = mixed.get_state()
    tables = [*TABLES, "hessian", "frequency_noise", drawing]
    more = {"loss": {"weight_decay": 0.1}, "analysis": ANALYSIS}
    watched = vitscope.watch(network, loader, tables=tables, **more)
    assert bits_after_training(network, images, watched) == alone
    assert torch.equal(mixed.get_state(), before)
    assert [member.epoch for member in watched.members] == [0, 1, 2]


def test_tables_are_those_that_look_gives_of_each_epochs_network(
    network: nn.Module, images: Tensor
) -> None:
    known = [copy.deepcopy(network)]
    with vitscope.watch(network, images, LABELS, TABLES) as watched:
        for _ in epochs_of(network, images):
            known.append(copy.deepcopy(network))
            watched.after_epoch()
    for epoch, at_epoch in enumerate(known):
        scope = vitscope.look(at_epoch, images, LABELS)
        for name in [*TABLES, "predictions", "blocks"]:
            table, theirs = (each.table(name, resamples=True) for each in (watched, scope))
            ours = table[table["epoch"] == epoch].reset_index(drop=True)
            assert {*ours["model"]} == {f"Dropping@epoch_{epoch}"}
            kept = [*theirs.columns.drop("model", errors="ignore")]
            pd.testing.assert_frame_equal(ours[kept], theirs[kept], check_exact=True)
    again = pickle.loads(pickle.dumps(watched))
    pd.testing.assert_frame_equal(again.table("blocks"), watched.table("blocks"))
    assert {*watched.claims()["model"]} == {f"Dropping, epoch {n}" for n in range(EPOCHS + 1)}
    assert watched._repr_html_() == f"<p>{escape(repr(watched))}</p>"
    assert "epochs: 0, 1, 2; tables: feature_variance" in repr(watched)


def test_figures_are_by_epoch(network: nn.Module, images: Tensor) -> None:
    def size(maps: Any) -> Any:
        return abs(maps).mean((1, 2, 3))

    with vitscope.watch(network, images, tables=["feature_variance", "spectrum", size]) as watched:
        for _ in epochs_of(network, images):
            watched.after_epoch()
    for name, column in (("feature_variance", "variance"), ("size", "value")):
        table, figure = watched.table(name), watched.plot(name)
        assert figure.axes[0].get_title() == "Dropping"
        assert len(figure.axes[0].lines) == EPOCHS + 1
        for epoch, line in enumerate(figure.axes[0].lines):
            rows = table[table["epoch"] == epoch]
            np.testing.assert_array_equal(line.get_xydata(), rows[["depth", column]])
        both = vitscope.compare({"a": watched, "b": watched}).plot(name, by_epoch=True)
        assert [axes.get_title() for axes in both.axes[:2]] == ["a Dropping", "b Dropping"]
    # A kind that is not by epoch has a panel for each, and so have changes.
    panels = ["Dropping, epoch 0", "Dropping, epoch 1", "Dropping, epoch 2"]
    for figure in (watched.plot("spectrum"), watched.plot("feature_variance", change=True)):
        assert [" ".join(axes.get_title().split()) for axes in figure.axes] == panels
    scope = vitscope.look(network, images)
    said = refusal(lambda: scope.plot("feature_variance", by_epoch=True))
    assert said.startswith("Of no network here is it known after how many epochs it was measured: ")


def watch_counting(network: nn.Module, images: Tensor, **keywords: Any) -> list[int | None]:
    with vitscope.watch(network, images, **keywords) as watched:
        for _ in range(5):
            watched.after_epoch()
    return [member.epoch for member in watched.members]


@pytest.mark.parametrize(
    ("keywords", "epochs", "said"),
    [
        ({}, [0, 1, 2, 3, 4, 5], "and will measure after every epoch\n"),
        ({"every": 2}, [0, 2, 4, 5], "and will measure after every 2 epochs\n"),
        (
            {"every": 2, "epochs": 5},
            [0, 2, 4, 5],
            "and will measure 3 more times during the training, in about ",
        ),
        (
            {"every": 5, "epochs": 5},
            [0, 5],
            "and will measure 1 more time during the training, in about ",
        ),
    ],
)
def test_which_epochs_are_measured_is_said_before(
    network: nn.Module,
    images: Tensor,
    capsys: pytest.CaptureFixture[str],
    keywords: dict[str, Any],
    epochs: list[int],
    said: str,
) -> None:
    assert watch_counting(network, images, **keywords) == epochs
    lines = capsys.readouterr().out
    assert lines.count(f"measured feature_variance of {IMAGES} images in ") == 1
    assert said in lines


def test_a_loop_that_resumes_says_the_epoch(
    network: nn.Module, images: Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    with vitscope.watch(network, images, every=10, begin=9, epochs=30) as watched:
        watched.after_epoch()
        for epoch in (11, 20, 20, "30"):
            watched.after_epoch(epoch)  # type: ignore[arg-type]
    assert [member.epoch for member in watched.members] == [9, 10, 20]
    said = capsys.readouterr().out
    assert "and will measure 3 more times during the training" in said
    assert "epoch 20 is not measured: epoch 20 was measured before it" in said


def test_what_cannot_be_measured_is_said_once_and_the_training_goes_on(
    network: nn.Module, images: Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def failing(maps: Any) -> Any:
        calls.append(None)
        if 3 < len(calls) < 6:
            raise MemoryError("no\nroom")
        return maps.mean((1, 2, 3))

    modes = [module.training for module in network.modules()]
    with vitscope.watch(network, images, tables=["feature_variance", failing]) as watched:
        for _ in range(4):
            watched.after_epoch()
    assert [module.training for module in network.modules()] == modes
    # An epoch has all tables or none.
    assert [member.epoch for member in watched.members] == [0, 3, 4]
    assert {*watched.feature_variance["epoch"]} == {*watched.failing["epoch"]} == {0, 3, 4}
    said = capsys.readouterr().out
    assert said.count("warning: epoch 1 is not measured: ") == said.count("warning") == 1
    assert "no\\nroom" in said


def test_a_training_that_fails_ends_with_its_own_error(network: nn.Module, images: Tensor) -> None:
    watched = vitscope.watch(network, images, every=5)

    def interrupted() -> None:
        with watched:
            watched.after_epoch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [member.epoch for member in watched.members] == [0]
    assert "This watch has had its training" in refusal(watched.__enter__)


def test_a_watch_without_its_block_says_so(
    network: nn.Module, images: Tensor, capsys: pytest.CaptureFixture[str]
) -> None:
    watched = vitscope.watch(network, images)
    watched.after_epoch()
    assert "epoch 1 is not measured: a network is watched within a `with` block" in (
        capsys.readouterr().out
    )
    said = refusal(lambda: watched.table("blocks"))
    assert said == "There is no table 'blocks' by epoch. There are none yet."


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"tables": ["variance"]}, "watch: tables: found 'variance', allowed: "),
        ({"tables": []}, "tables: found none, allowed: some of blocks, "),
        ({"tables": "attention"}, "watch: tables: attention takes a network"),
        ({"tables": "classification"}, "watch: tables: classification needs the classes"),
        ({"tables": "cka_between"}, "watch: tables: cka_between takes two networks"),
        ({"every": 0}, "every: found 0, allowed: a whole number, from 1."),
        ({"every": None}, "every: found nothing, allowed: a whole number, from 1."),
        ({"begin": -1}, "begin: found -1, allowed: a whole number, from 0."),
        ({"epochs": 1.5}, "epochs: found 1.5, allowed: a whole number, from 1."),
    ],
)
def test_wrong_arguments_are_refused_at_the_start(
    network: nn.Module, images: Tensor, keywords: dict[str, Any], sentence: str
) -> None:
    assert refusal(lambda: vitscope.watch(network, images, **keywords)).startswith(sentence)


def test_no_network_is_refused(images: Tensor) -> None:
    said = refusal(lambda: vitscope.watch(images, images))  # type: ignore[arg-type]
    assert said == "`network` is a Tensor, allowed: a torch.nn.Module."


def test_a_network_that_several_processes_train_is_watched_in_itself(
    network: nn.Module, images: Tensor, tmp_path: Any
) -> None:
    group = torch.distributed
    group.init_process_group("gloo", f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        wrapped = nn.parallel.DistributedDataParallel(network)
        assert watch_counting(wrapped, images, every=5) == [0, 5]
        with vitscope.watch(wrapped, images) as watched:
            pass
    finally:
        group.destroy_process_group()
    assert {*watched.feature_variance["model"]} == {"Dropping@epoch_0"}


class FullyShardedDataParallel(nn.Sequential):
    """Has the name of torch's class, by which that is told."""


def test_weights_in_pieces_are_refused(network: nn.Module, images: Tensor) -> None:
    with_pieces = FullyShardedDataParallel(network)
    said = refusal(lambda: vitscope.watch(with_pieces, images))
    assert said.endswith("(FullyShardedDataParallel): watch one that is whole.")


@pytest.fixture(scope="module")
def trainers(packages: Packages) -> Iterator[None]:
    """Let Lightning, and what the Trainer of transformers needs, be imported."""
    declare_torchvision_operators()
    with importing_from(*map(packages.unpacked, ("accelerate==1.15.0", "lightning==2.6.6"))):
        yield


def library(name: str) -> Any:
    """Return a library that a test needs, or skip the test and say why."""
    try:
        return import_module(name)
    except ImportError as error:
        pytest.skip(f"{name} cannot be imported: {error}")


def transformers_training(
    network: nn.Module, images: Tensor, callbacks: list[Any], folder: Any
) -> None:
    transformers = library("transformers")
    if not transformers.utils.is_accelerate_available():
        pytest.skip("transformers was imported without accelerate")
    arguments = transformers.TrainingArguments(
        str(folder), num_train_epochs=2, per_device_train_batch_size=4, report_to=[],
        save_strategy="no", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    pairs = zip(images, LABELS, strict=True)
    data = [{"pixel_values": image, "labels": label} for image, label in pairs]
    trainer = transformers.Trainer(network, arguments, train_dataset=data, callbacks=callbacks)
    trainer.train()


def lightning_training(
    network: nn.Module, images: Tensor, callbacks: list[Any], folder: Any
) -> None:
    lightning = library("lightning.pytorch")

    class Module(lightning.LightningModule):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def training_step(self, batch: Any) -> Tensor:
            loss: Tensor = self.network(*batch)["loss"]
            return loss

        def configure_optimizers(self) -> Any:
            return torch.optim.AdamW(self.parameters(), 1e-2)

    loader = DataLoader(TensorDataset(images, LABELS), 4, shuffle=True)
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", callbacks=callbacks, logger=False, default_root_dir=folder,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Module(), loader)


@pytest.mark.nightly
@pytest.mark.usefixtures("trainers")
@pytest.mark.parametrize(
    ("train", "callback"),
    [(transformers_training, "transformers"), (lightning_training, "lightning")],
)
def test_trainers_of_others_take_a_callback(
    network: nn.Module,
    images: Tensor,
    tmp_path: Any,
    capsys: pytest.CaptureFixture[str],
    train: Callable[..., None],
    callback: str,
) -> None:
    alone = copy.deepcopy(network)
    seeded(2)
    train(alone, images, [], tmp_path)
    watched = vitscope.watch(network, images, LABELS, "feature_variance")
    seeded(2)
    train(network, images, [getattr(watched, callback)()], tmp_path)
    for name, ours in network.state_dict().items():
        assert torch.equal(ours, alone.state_dict()[name]), name
    assert [member.epoch for member in watched.members] == [0, 1, 2]
    assert "and will measure 2 more times during the training" in capsys.readouterr().out
    last = vitscope.look(network, images, LABELS).feature_variance["variance"]
    variances = watched.feature_variance
    found = variances.loc[variances["epoch"] == 2, "variance"]
    np.testing.assert_array_equal(found, last)


def test_a_library_that_is_absent_is_named(
    network: nn.Module, images: Tensor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "lightning.pytorch", None)
    watched = vitscope.watch(network, images)
    assert "lightning.pytorch cannot be imported here: " in refusal(watched.lightning)
