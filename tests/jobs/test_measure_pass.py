"""What is measured in one pass is what is measured of latents that were written before."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from tests.helpers.networks import mini
from vitscope.data.building import build
from vitscope.data.split import Split, select
from vitscope.files.tables import Table, read_metadata, read_part
from vitscope.files.tensors import TensorFile
from vitscope.jobs.job import Resources, find_work
from vitscope.jobs.measure_pass import measures_of_pass
from vitscope.measures import registry
from vitscope.networks.running.held import HeldMaps
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

IMAGES, SHARD = 40, 24
MODEL = "vit"


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    path = tmp_path_factory.mktemp("data") / "test.safetensors"
    splits = {"test": {"images": IMAGES, "seed": 0}}
    build("shapes32", asdict(study.data["shapes32"]) | {"splits": splits}, "test", path)
    return Split(path)


def study_with(batch: int, of_cka: int, dtype: str = "float32") -> Study:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    changes: dict[str, Any] = {"images": IMAGES, "shard_size": SHARD, "batch_size": batch}
    analysis = replace(study.analysis, **changes, latents_dtype=dtype)
    sections = study.sections | {"cka": {"batch_size": of_cka}}
    return replace(study, analysis=analysis, sections=sections)


class Runs:
    """Runs jobs of a network in memory, one after the other."""

    def __init__(self, study: Study, split: Split, folder: Path) -> None:
        self.study, self.folder = study, folder
        network, _ = mini(MODEL)
        self.inputs = {"checkpoint": network, "images": split, "blocks": folder / "blocks.parquet"}
        self.run("list_blocks", {"network": network}, {"blocks": str(self.inputs["blocks"])})

    def run(self, job: str, inputs: Any, outputs: Any, **names: str) -> None:
        work = find_work(job)
        values = work.JOB.values(self.study, {"model": MODEL, **names})
        work.run(inputs, outputs, values | {"device": torch.device("cpu")}, Resources())

    def in_a_pass(self) -> dict[str, pd.DataFrame]:
        """Return the table of each measure from passes of all shards."""
        passes = [self.folder / f"pass-{number}.parquet" for number in range(2)]
        for number, path in enumerate(passes):
            self.run("measure_pass", self.inputs, {"parts": path}, part=str(number))
        return dict(self._merged(dict.fromkeys(self.measures, passes)))

    def of_latents(self) -> dict[str, pd.DataFrame]:
        """Return the same from latents that are written and read again."""
        parts: dict[str, list[Path]] = {name: [] for name in self.measures}
        for number in range(2):
            latents = self.folder / f"{number}.safetensors"
            self.run("extract_latents", self.inputs, {"latents": latents}, part=str(number))
            for name, paths in parts.items():
                paths.append(self.folder / f"{name}-{number}.parquet")
                place = {"part": str(number), "measure": name}
                self.run("measure_latents", {"latents": latents}, {"part": paths[-1]}, **place)
        return dict(self._merged(parts))

    @property
    def measures(self) -> list[str]:
        return [measure.name for measure in measures_of_pass(self.study, MODEL)]

    def _merged(self, parts: dict[str, list[Path]]) -> Iterator[tuple[str, pd.DataFrame]]:
        for name, paths in parts.items():
            inputs, path = {"parts": paths, "blocks": self.inputs["blocks"]}, self.folder / "table"
            if registry.declared(name).of_pairs:
                part = Table(**registry.part_columns_of(name))
                yield (
                    name,
                    pd.concat([read_part(part, p, name)[0] for p in paths], ignore_index=True),
                )
            else:
                self.run("merge", inputs, {"table": path}, measure=name)
                yield name, Table(**registry.columns_of(name)).read(path)


# Batches that fit into those of CKA, that are larger, and that fit only into a whole shard.
@pytest.mark.parametrize(
    ("batch", "of_cka", "dtype"),
    [
        (8, 16, "float32"),
        pytest.param(24, 12, "bfloat16", marks=pytest.mark.nightly),
        pytest.param(20, 16, "float32", marks=pytest.mark.nightly),
    ],
)
def test_a_pass_measures_what_latents_do(
    split: Split, tmp_path: Path, batch: int, of_cka: int, dtype: str
) -> None:
    runs = Runs(study_with(batch, of_cka, dtype), split, tmp_path)
    ours, theirs = runs.in_a_pass(), runs.of_latents()
    assert {"feature_variance", "fourier", "cka", "cka_between", "spatial_share"} <= {*ours}
    for name, table in theirs.items():
        pd.testing.assert_frame_equal(ours[name], table, check_exact=True)


def test_parts_name_images_by_their_rows_in_the_split(split: Split, tmp_path: Path) -> None:
    """As predictions name them: the second shard of eight of forty images."""
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    chosen = replace(study.analysis, images=8, shard_size=4, seed=3)
    runs = Runs(
        replace(study, analysis=chosen, figures={"fig9": study.figures["fig9"]}), split, tmp_path
    )
    rows = select(IMAGES, 8, 3)[4:].tolist()
    path, latents = tmp_path / "pass.parquet", {"latents": tmp_path / "1.safetensors"}
    runs.run("measure_pass", runs.inputs, {"parts": path}, part="1")
    runs.run("extract_latents", runs.inputs, latents, part="1")
    parts = {"feature_variance": path}
    for job, measure, inputs, output in (
        ("measure_latents", "fourier", latents, "part"),
        ("measure_model", "attention", runs.inputs, "table"),
        ("measure_model", "probe", runs.inputs, "table"),
    ):
        parts[measure] = tmp_path / f"{measure}.parquet"
        runs.run(job, inputs, {output: parts[measure]}, part="1", measure=measure)
        assert "rows" not in read_metadata(parts[measure])
    for measure, file in parts.items():
        found, _ = read_part(Table(**registry.part_columns_of(measure)), file, measure)
        assert found["image"].unique().tolist() == rows, measure


def test_maps_that_lie_on_a_gpu_are_measured_there(
    split: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tensors of the processor pass for those of a GPU.

    Values differ by rounding: by 1e-7 of the largest variance, and by 3e-6 of the largest
    amplitude, of which the processor has single precision.
    """
    runs = Runs(study_with(16, 16), split, tmp_path)
    expected = runs.in_a_pass()
    asked: list[str] = []

    def on_gpu(self: HeldMaps, name: str) -> torch.Tensor:
        asked.append(name)
        return self._maps[name][: self.images]

    monkeypatch.setattr(HeldMaps, "on_gpu", on_gpu)
    found = runs.in_a_pass()
    # Of the variance, without the maps of one pixel, and of all amplitudes.
    assert len(asked) > len(set(asked)) > 0
    for name, tolerance in (("feature_variance", 1e-7), ("fourier", 3e-6)):
        ours, theirs = (each[name].select_dtypes("float") for each in (found, expected))
        largest = theirs.abs().to_numpy().max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * largest)
        assert not ours.equals(theirs)


def test_maps_are_read_as_those_of_a_file(tmp_path: Path) -> None:
    held = HeldMaps("a network", {"stem": (2, 3, 3)}, 4, "bfloat16", torch.device("cpu"))
    maps = torch.randn(5, 2, 3, 3)
    held.put(0, maps[:1])
    held.images = 1
    held.put(0, maps[1:3])
    held.images = 3
    assert held.names == ["stem"]
    assert held.shape("stem") == (3, 2, 3, 3)
    assert held.dtype("stem") == "BF16"
    stored = maps[:3].bfloat16().view(torch.uint16).numpy()
    assert (held.mapped("stem") == stored).all()
    found = held.read("stem", 1, np.empty_like(stored[1:]))
    assert (found == stored[1:]).all()
    # The next measure reads the same memory.
    assert not found.flags.writeable
    # It is given to measures in place of a file.
    named = {name for name in dir(TensorFile) if not name.startswith("_")} - {"array"}
    assert named <= {*dir(held)}
