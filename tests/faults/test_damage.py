import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.helpers.refusals import refusal
from tests.runs.copies import SETTINGS, SOME, TINY, Workflow
from vitscope.corruptions.corrupted_images import CorruptedImages
from vitscope.corruptions.corrupted_images import build_corrupted as corrupt
from vitscope.data.split import Split
from vitscope.files.tables import read_metadata
from vitscope.files.tensors import TensorFile
from vitscope.jobs.tables import find_table
from vitscope.measures.cka.compute import measure_cka
from vitscope.measures.feature_variance import compute as variance
from vitscope.measures.fourier import compute as fourier
from vitscope.measures.given import OnLatents
from vitscope.networks.checkpoints.conversion import load_converted_model, write_weights
from vitscope.networks.checkpoints.foreign import read_foreign
from vitscope.training.batches import AugmentedImages

# Reads all tables.
RECORD = f"results/{TINY}/run.yaml"
FLIPS = 40
NETWORK = {"family": "vit", "arch": SETTINGS["models"]["vit"]["arch"]}
NETWORK |= {"classes": 10, "image_size": 32, "mean": [0.5, 0.5, 0.5]}


def corrupted_images(path: Path) -> None:
    corrupted = CorruptedImages(path)
    for severity in corrupted.severities:
        corrupted.images(severity)


def read_split(path: Path) -> None:
    split = Split(path)
    split.normalize(slice(None), [0.5] * 3, [0.25] * 3)
    split.column("index")


def read_both(name: str, path: Path) -> None:
    find_table(name).read(path)
    read_metadata(path)


# Every kind of file that one job writes and another reads, and everything that reads it.
KINDS: dict[str, tuple[str, list[Callable[[Path], object]]]] = {
    "checkpoint": (
        "checkpoints/vit.safetensors",
        [lambda path: load_converted_model(path, NETWORK)],
    ),
    "trained weights": ("training.safetensors", [lambda path: read_foreign(path, "vit")]),
    "latents": (
        "latents/vit/0.safetensors",
        [
            lambda path: variance.measure_feature_variance(OnLatents(TensorFile(path), 0)),
            lambda path: fourier.measure_fourier(OnLatents(TensorFile(path), 0), False, None),
            lambda path: fourier.measure_fourier(OnLatents(TensorFile(path), 0), True, [0.5, 1]),
            lambda path: measure_cka(OnLatents(TensorFile(path), 0), 4),
        ],
    ),
    "data artefact": ("data/shapes32/test.safetensors", [read_split]),
    "augmented images": ("alike.safetensors", [lambda path: AugmentedImages(path).rows(0, 4)]),
    "corrupted images": ("fog.safetensors", [corrupted_images]),
    "block table": ("blocks/vit.parquet", [partial(read_both, "blocks")]),
    "table of a model": ("feature_variance/vit.parquet", [partial(read_both, "feature_variance")]),
}


@pytest.fixture(scope="module")
def written(made: Workflow, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of a study, and besides what is not kept or what it has no need of."""
    folder = tmp_path_factory.mktemp("written") / "results"
    results = made.root / "results" / TINY
    for path, _ in KINDS.values():
        if (results / path).exists():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes((results / path).read_bytes())
    augmented = min(results.glob("augmented/*.safetensors"))
    (folder / "alike.safetensors").write_bytes(augmented.read_bytes())
    split = Split(results / "data/shapes32/test.safetensors")
    corrupt(split, 4, "fog", [1, 5], 0, folder / "fog.safetensors")
    weights = read_foreign(results / "checkpoints/vit.safetensors", "vit").places[0].weights
    write_weights(folder / "training.safetensors", weights, {"snapshot": "end"})
    return folder


def harms(whole: bytes, kind: str) -> list[bytes]:
    """Return what a file may become: bits that flip, sectors that are lost, an end that is."""
    chance = random.Random(kind)
    harmed = []
    for _ in range(FLIPS):
        flipped = bytearray(whole)
        flipped[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        harmed.append(bytes(flipped))
    sector = chance.randrange(len(whole) // 512) * 512
    if any(whole[sector : sector + 512]):
        harmed.append(whole[:sector] + bytes(512) + whole[sector + 512 :])
    harmed += [whole[: chance.randrange(len(whole))] for _ in range(5)]
    return [*harmed, whole[:-1], b"", bytes(len(whole)), b"<html></html>"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_changed_is_refused(written: Path, tmp_path: Path, kind: str) -> None:
    name, readers = KINDS[kind]
    whole = (written / name).read_bytes()
    path = tmp_path / Path(name).name
    for read in readers:
        path.write_bytes(whole)
        read(path)
        for harmed in harms(whole, kind):
            path.write_bytes(harmed)
            said = refusal(read, path)
            assert str(path) in said
            assert "\n" not in said


def flip(path: Path) -> None:
    """Flip bits of the second half of a file, as a disk or a memory that fails would.

    In every kilobyte: of a data set, a job reads some of the images.
    """
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 2, len(content), 1024):
        content[place] ^= 1
    path.write_bytes(content)


DAMAGED = (
    "latents/vit/1.safetensors",
    "predictions/vit/test.parquet",
    "data/shapes32/train.safetensors",
)


@pytest.mark.nightly
def test_a_run_names_what_is_damaged_and_makes_it_again(victim: Workflow) -> None:
    before = victim.digests("results", "figures")
    results = victim.root / "results" / TINY
    for name in DAMAGED:
        flip(results / name)
    code, output = victim.run("--keep-going", *SOME, RECORD, default=TINY)
    assert code != 0
    assert "Traceback" not in output
    for name in DAMAGED:
        assert f"vitscope: results/{TINY}/{name} is damaged: " in output
        assert output.count("delete it and run again.") >= len(DAMAGED)
        (results / name).unlink()
    # By name: Snakemake leaves out what no target needs any more.
    victim.make(*sorted(before), default=TINY)
    assert victim.digests("results", "figures") == before


@pytest.mark.nightly
def test_a_shard_of_another_model_in_its_place_is_refused(victim: Workflow) -> None:
    folder = victim.root / "results" / TINY / "latents"
    part, table = folder / "vit" / "0.safetensors", folder.parent / "feature_variance/vit.parquet"
    part.write_bytes((folder / "resnet" / "0.safetensors").read_bytes())
    table.unlink()
    name = table.relative_to(victim.root)
    code, output = victim.run(str(name), "--rerun-triggers", "mtime", default=TINY)
    assert code != 0
    assert f"{part.relative_to(victim.root)} is of resnet and not of vit: delete it" in output
    part.unlink()
    victim.make(str(name), default=TINY)


@pytest.mark.nightly
def test_a_damaged_table_that_a_plan_reads_is_named_at_the_end(victim: Workflow) -> None:
    results = victim.root / "results" / TINY
    blocks = results / "blocks" / "vit.parquet"
    flip(blocks)
    part = results / "latents" / "vit" / "1.safetensors"
    part.unlink()
    target = str(part.relative_to(victim.root))
    code, output = victim.run(target, "--rerun-triggers", "mtime", default=TINY)
    assert code != 0
    name = blocks.relative_to(victim.root)
    sentence = f"vitscope: {name} is damaged: it is not what was written; delete it and run again."
    assert output.endswith(f"{sentence}\n")
    assert output.count(sentence) == 1
    blocks.unlink()
    victim.make(target, default=TINY)
