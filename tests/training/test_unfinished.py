import multiprocessing
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.training.recipes import MEAN, RECIPE, STD, Splits, break_off, flip
from vitscope.files.tensors import TensorFile
from vitscope.files.whole import sha256_of
from vitscope.networks.building.networks import find_family
from vitscope.training.batches import seeded
from vitscope.training.events import EVENTS
from vitscope.training.history import remove_unfinished
from vitscope.training.loop import train

EPOCHS = 6
# All that may differ after a break: dropped paths, statistics of batches, kernels in an order of
# their own, chance in images, snapshots at the first and the last moment and between.
NETWORKS: dict[str, Any] = {
    "convnext": {"patch_size": 4, "depths": [1, 1, 1, 1], "dims": [8] * 4, "drop_path_rate": 0.3},
    "resnet": {"block": "basic", "blocks": [1, 1], "width": 8},
}
KEPT = RECIPE | {
    "epochs": EPOCHS,
    "batch_size": 45,
    "erasing": 0.5,
    "trajectory": True,
    "snapshots": [0, 1, 3, EPOCHS, 100],
    "snapshot_dtype": "float16",
}


def trained(
    splits: Splits,
    folder: Path,
    family: str = "resnet",
    say: Callable[[str], None] = lambda text: None,
    made_of: dict[str, str] | None = None,
    keep_unfinished: bool = False,
    **changes: Any,
) -> None:
    with seeded(0):
        model = find_family(family).build(NETWORKS[family], 10, 32)
    recipe = KEPT | changes
    others: dict[str, Any] = {"mean": MEAN, "std": STD, "workers": 1}
    others |= {"say": say, "made_of": made_of, "keep_unfinished": keep_unfinished}
    train(model, *splits, recipe, 0, folder, **others)


def digests(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder, hidden ones too; events know the time."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if path.parent.name != EVENTS]
    return {str(path.relative_to(folder)): sha256_of(path) for path in files}


def checkpoints(folder: Path) -> list[int]:
    """Return the epochs of the checkpoints that a training has left."""
    try:
        found = list(folder.glob("unfinished/checkpoint_*"))
    except FileNotFoundError:  # A training that ends has removed the folder meanwhile.
        found = []
    return sorted(int(path.stem.removeprefix("checkpoint_")) for path in found)


def killed(
    splits: Splits, folder: Path, family: str, kills: int, seconds: float, epochs: int
) -> int:
    """Kill a training so often, let it end, and return how many lives went on after another.

    The moments of the kills are spread over the epochs, and random within one, which takes some
    `seconds`.
    """
    chance = random.Random(kills)
    said = folder.with_suffix(".txt")

    def live() -> None:
        with said.open("a") as file:
            say = partial(print, file=file, flush=True)
            trained(splits, folder, family, say, epochs=epochs)

    for number in range(kills + 1):
        # Forked, since a start of torch takes seconds.
        process = multiprocessing.get_context("fork").Process(target=live)
        process.start()
        if number < kills:
            share = number * (epochs - 1) // kills
            while process.is_alive() and max(checkpoints(folder), default=0) < share:
                time.sleep(0.002)
            time.sleep(chance.uniform(0, seconds))
            os.kill(process.pid, signal.SIGKILL)
        process.join()
        # While the newest is written, there are those before it.
        assert len(checkpoints(folder)) <= 3
        if process.exitcode == 0:
            break
        assert process.exitcode == -signal.SIGKILL
    assert process.exitcode == 0
    return said.read_text().count("going on after epoch")


def nightly(*values: Any) -> Any:
    """Return the values of a test that takes a training of its own, from the first epoch on."""
    return pytest.param(*values, marks=pytest.mark.nightly)


@pytest.mark.parametrize(
    ("family", "kills", "epochs", "least"),
    [("resnet", 2, EPOCHS, 1), *(nightly(family, 10, 40, 5) for family in NETWORKS)],
)
def test_a_training_that_is_killed_ends_with_the_same_bytes(
    splits: Splits, tmp_path: Path, family: str, kills: int, epochs: int, least: int
) -> None:
    """As one that is not killed; `least` of its lives go on after another."""
    calm, said = tmp_path / "calm", [time.monotonic()]
    trained(splits, calm, family, lambda _: said.append(time.monotonic()), epochs=epochs)
    # The fastest epoch: the first is slower, and a kill after the end would break nothing off.
    seconds = min(later - earlier for earlier, later in pairwise(said))
    assert len(said) > epochs
    assert killed(splits, tmp_path / "killed", family, kills, seconds, epochs) >= least
    expected = digests(calm)
    assert digests(tmp_path / "killed") == expected
    listed = [n for n in KEPT["snapshots"] if n <= epochs]
    names = {"init", "warmup", "end", *(f"epochs/epoch_{n}" for n in listed)}
    assert expected.keys() == {"history.parquet", *(f"{name}.safetensors" for name in names)}


@pytest.fixture(scope="module")
def calm(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("calm")
    trained(splits, folder)
    return folder


@pytest.fixture(scope="module")
def broken_once(splits: Splits, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is left of a training that was broken off after four epochs."""
    folder = tmp_path_factory.mktemp("broken")
    with pytest.raises(KeyboardInterrupt):
        trained(splits, folder, say=partial(break_off, 4))
    assert {path.name for path in folder.iterdir()} == {"unfinished", EVENTS}
    assert checkpoints(folder) == [3, 4]
    return folder


@pytest.fixture
def broken(broken_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(broken_once, tmp_path / "broken"))


def test_a_training_uphill_goes_on(splits: Splits, tmp_path: Path) -> None:
    """Sharpness-aware minimization keeps nothing from step to step."""
    short: dict[str, Any] = {"sam": 0.1, "epochs": 3}
    with pytest.raises(KeyboardInterrupt):
        trained(splits, tmp_path / "broken", say=partial(break_off, 2), **short)
    said: list[str] = []
    trained(splits, tmp_path / "broken", say=said.append, **short)
    assert said[0] == "going on after epoch 2 of 3"
    trained(splits, tmp_path / "calm", **short)
    assert digests(tmp_path / "broken") == digests(tmp_path / "calm")
    trained(splits, tmp_path / "plain", **short | {"sam": None})
    ends = [tmp_path / name / "end.safetensors" for name in ("calm", "plain")]
    assert sha256_of(ends[0]) != sha256_of(ends[1])


def test_a_training_whose_results_are_lost_has_them_at_once(
    splits: Splits, calm: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "study" / "training" / "net"
    trained(splits, folder, keep_unfinished=True)
    assert {path.name for path in folder.iterdir()} >= {"end.safetensors", "unfinished"}
    for path in folder.glob("*.*"):
        path.unlink()
    # Not of a training at work.
    remove_unfinished(tmp_path)
    assert (folder / "unfinished").is_dir()
    said: list[str] = []
    trained(splits, folder, say=said.append, keep_unfinished=True)
    assert said == [f"going on after epoch {EPOCHS} of {EPOCHS}"]
    remove_unfinished(tmp_path)
    assert digests(folder) == digests(calm)


def test_snapshots_are_those_of_their_epochs(calm: Path) -> None:
    same = {"init": "epoch_0", "warmup": "epoch_1", "end": f"epoch_{EPOCHS}"}
    for name, epoch in same.items():
        places = (name, f"epochs/{epoch}")
        one, other = (TensorFile(calm / f"{place}.safetensors") for place in places)
        assert one.names == other.names
        assert all((one.array(key) == other.array(key)).all() for key in one.names)
        assert other.metadata["snapshot"] == epoch
        assert other.metadata["epoch"] == one.metadata["epoch"] == epoch.removeprefix("epoch_")


def cut(path: Path, less: int) -> None:
    os.truncate(path, path.stat().st_size - less)


NEWEST, BEFORE = "checkpoint_4.safetensors", "checkpoint_3.safetensors"


@pytest.mark.parametrize(
    ("spoil", "files", "epoch", "why"),
    [
        (flip, [NEWEST], 3, [f"{NEWEST} is not used: it is damaged."]),
        (partial(cut, less=4), ["moments"], 3, ["moments ends early or is not there."]),
        nightly(flip, [], 4, []),
        nightly(partial(cut, less=900), [NEWEST], 3, [f"{NEWEST} is not used: it is damaged."]),
        nightly(flip, [NEWEST, BEFORE], 0, [f"{NEWEST} is not", f"{BEFORE} is not"]),
        nightly(flip, ["moments"], 0, ["moments is damaged.", "moments is damaged."]),
        nightly(flip, ["warmup.safetensors"], 0, ["warmup.safetensors is not what was"] * 2),
        nightly(
            Path.unlink, ["epochs/epoch_3.safetensors"], 3, ["epoch_3.safetensors is not what"]
        ),
    ],
)
def test_what_is_damaged_is_not_used(
    splits: Splits,
    calm: Path,
    broken: Path,
    spoil: Callable[[Path], None],
    files: list[str],
    epoch: int,
    why: list[str],
) -> None:
    for file in files:
        spoil(broken / "unfinished" / file)
    said: list[str] = []
    trained(splits, broken, say=said.append)
    assert digests(broken) == digests(calm)
    told = [line for line in said if "not used" in line]
    assert len(told) == len(why)
    assert all(part in line for part, line in zip(why, told, strict=True))
    assert [line for line in said if "going on" in line] == (
        [f"going on after epoch {epoch} of {EPOCHS}"] if epoch else []
    )
    assert sum(line.startswith("epoch ") for line in said) == EPOCHS - epoch


@pytest.mark.parametrize(
    ("changes", "other"),
    [
        ({"weight_decay": 0.1}, "recipe"),
        nightly({"made_of": {"network": "deeper"}}, "network"),
        nightly({"family": "convnext"}, "first weights"),
    ],
)
def test_what_another_training_left_is_not_used(
    splits: Splits, broken: Path, changes: dict[str, Any], other: str
) -> None:
    said: list[str] = []
    trained(splits, broken, say=said.append, **changes)
    assert [line.partition(" is not used: ")[2] for line in said[:2]] == [
        f"it is of another training, of another {other}."
    ] * 2
    assert said[2].startswith("epoch 1 of")
    assert [path.name for path in broken.iterdir() if "unfinished" in path.name] == []
