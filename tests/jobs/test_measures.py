from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import yaml

from tests.helpers.latents import written
from tests.helpers.networks import mini
from tests.helpers.own_network import STUDY as MINE
from tests.helpers.refusals import refusal
from vitscope.data.building import build_split_file
from vitscope.data.split import Split, select
from vitscope.errors import VitscopeError
from vitscope.files.pairs import pair_name
from vitscope.files.tables import OF, Table, read_metadata, read_table_part, write_table_parts
from vitscope.files.tensors import TensorFile
from vitscope.jobs.job import Request, Resources, find_job
from vitscope.jobs.measures import measures_in_pass_job, merge_job
from vitscope.measures import registry
from vitscope.measures.cka import measure as between
from vitscope.measures.cka.compute import measure_cka_between
from vitscope.measures.given import OnLatents
from vitscope.measures.hessian.measure import HESSIAN_TABLE
from vitscope.networks.checkpoints.conversion import convert_made
from vitscope.networks.finding.cut_points import BLOCKS
from vitscope.networks.running.checking import check_network
from vitscope.networks.running.extraction import HeldMaps
from vitscope.package_data import ROOT
from vitscope.planning.costs_of_job import count_network
from vitscope.settings.study import Study
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

IMAGES, SHARD = 40, 24
MODEL = "vit"


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Split:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    path = tmp_path_factory.mktemp("data") / "test.safetensors"
    splits = {"test": {"images": IMAGES, "seed": 0}}
    build_split_file("shapes32", asdict(study.data["shapes32"]) | {"splits": splits}, "test", path)
    return Split(path)


def study_with(batch: int, of_cka: int, dtype: str = "float32", shard: int = SHARD) -> Study:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    changes: dict[str, Any] = {"images": IMAGES, "shard_size": shard, "batch_size": batch}
    analysis = replace(study.analysis, **changes, latents_dtype=dtype)
    sections = study.sections | {"cka": {"batch_size": of_cka}}
    return replace(study, analysis=analysis, sections=sections)


class Runs:
    """Runs jobs of a network in memory, one after the other."""

    def __init__(self, study: Study, split: Split, folder: Path) -> None:
        self.study, self.folder = study, folder
        network, _ = mini(MODEL)
        self.inputs = {"checkpoint": network, "images": split, "blocks": folder / "blocks.parquet"}
        self.run("convert_checkpoint", {"network": network}, {"blocks": str(self.inputs["blocks"])})

    def run(self, job: str, inputs: Any, outputs: Any, **names: str) -> None:
        work = find_job(job)
        values = work.values(self.study, {"model": MODEL, **names})
        work.run(inputs, outputs, values | {"device": torch.device("cpu")}, Resources())

    def in_a_pass(self) -> dict[str, pd.DataFrame]:
        """Return the table of each measure from passes of all shards, the last one first."""
        shards = -(-IMAGES // self.study.analysis.shard_size)
        passes = [self.folder / f"pass-{number}.parquet" for number in range(shards)]
        for number, path in enumerate(passes):
            self.run("measure_pass", self.inputs, {"parts": path}, part=str(number))
        return self._merged({name: {"parts": passes[::-1]} for name in self.measures})

    def of_latents(self) -> dict[str, pd.DataFrame]:
        """Return the same from latents that are written, which the job that merges measures."""
        shards = [self.folder / f"{number}.safetensors" for number in range(2)]
        for number, latents in enumerate(shards):
            self.run("extract_latents", self.inputs, {"latents": latents}, part=str(number))
        return self._merged({name: {"latents": shards} for name in self.measures})

    def of_parts(self) -> dict[str, pd.DataFrame]:
        """Return the same from parts of their own, which are measured of these latents."""
        parts: dict[str, dict[str, list[Path]]] = {name: {"parts": []} for name in self.measures}
        for number in range(2):
            latents = {"latents": self.folder / f"{number}.safetensors"}
            for name, found in parts.items():
                found["parts"].append(self.folder / f"{name}-{number}.parquet")
                part = {"part": found["parts"][-1]}
                self.run("measure", latents, part, part=str(number), measure=name)
        return self._merged(parts)

    @property
    def measures(self) -> list[str]:
        return [measure.name for measure in measures_in_pass_job(self.study, MODEL)]

    def _merged(self, given: dict[str, dict[str, list[Path]]]) -> dict[str, pd.DataFrame]:
        """Merge each measure; one of pairs of the network with itself."""
        found, path = {}, self.folder / "table"
        merged = {name: name for name in given} | {"spectrum": "fourier"}
        for name, measured in merged.items():
            inputs, model = {**given[measured], "blocks": self.inputs["blocks"]}, MODEL
            if registry.declared(name).models == 2:
                inputs |= {f"other_{key}": each for key, each in inputs.items()}
                model = pair_name([MODEL, MODEL])
            self.run("merge", inputs, {"table": path}, measure=name, model=model)
            found[name] = Table(**registry.columns_of(name)).read(path)
        return found


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
    ours, theirs, apart = runs.in_a_pass(), runs.of_latents(), runs.of_parts()
    assert {"feature_variance", "fourier", "cka", "cka_between", "spatial_share"} <= {*ours}
    for name, table in theirs.items():
        pd.testing.assert_frame_equal(ours[name], table, check_exact=True)
        pd.testing.assert_frame_equal(apart[name], table, check_exact=True)


def test_a_plan_knows_what_the_parts_of_a_pass_take(split: Split, tmp_path: Path) -> None:
    found, planned = [], []
    for shard in (8, IMAGES):
        study = study_with(4, 4, shard=shard)
        shown = {name: study.figures[name] for name in ("fig8", "fig9_images")}
        runs = Runs(replace(study, figures=shown), split, tmp_path)
        assert {*runs.measures} == {"fourier", "feature_variance"}
        runs.run("measure_pass", runs.inputs, {"parts": tmp_path / "pass.parquet"}, part="0")
        network, names = count_network(study, MODEL), {"model": MODEL, "part": "0"}
        planned.append(find_job("measure_pass").takes.writes(Request(runs.study, names, network)))
        found.append((tmp_path / "pass.parquet").stat().st_size)
    # What 32 more images take: a footer is as long for any number.
    assert planned[1] - planned[0] == pytest.approx(found[1] - found[0], rel=0.15)


def test_the_size_of_shards_does_not_matter(split: Split, tmp_path: Path) -> None:
    runs = Runs(study_with(8, 8, shard=IMAGES), split, tmp_path)
    whole = runs.in_a_pass()
    runs.study = study_with(8, 8, shard=8)
    cut = runs.in_a_pass()
    assert {*cut} == {*whole}
    for name, table in whole.items():
        pd.testing.assert_frame_equal(cut[name], table, check_exact=True)


def test_parts_name_images_by_their_rows_in_the_split(split: Split, tmp_path: Path) -> None:
    """As predictions name them: the second shard of eight of forty images."""
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    chosen = replace(study.analysis, images=8, shard_size=4, seed=3)
    figures = {"fig9": replace(study.figures["fig9"], models=("vit",))}
    runs = Runs(replace(study, analysis=chosen, figures=figures), split, tmp_path)
    rows = select(IMAGES, 8, 3)[4:].tolist()
    path, latents = tmp_path / "pass.parquet", {"latents": tmp_path / "1.safetensors"}
    runs.run("measure_pass", runs.inputs, {"parts": path}, part="1")
    runs.run("extract_latents", runs.inputs, latents, part="1")
    parts = {"feature_variance": path}
    for name, inputs in (("fourier", latents), ("attention", runs.inputs), ("probe", runs.inputs)):
        parts[name] = tmp_path / f"{name}.parquet"
        runs.run("measure", inputs, {"table": parts[name]}, part="1", measure=name)
        assert "rows" not in read_metadata(parts[name])
    for name, file in parts.items():
        found, _ = read_table_part(Table(**registry.part_columns_of(name)), file, name)
        assert found["image"].unique().tolist() == rows, name


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


def merged(
    measure: str, inputs: Any, target: Path, models: dict[str, str] | None = None
) -> dict[str, str]:
    """Merge the parts of a measure, by default of a ViT; return the digests of the table."""
    values = {
        "models": models or {"": "vit"},
        "settings": {},
        "columns": registry.columns_of(measure),
        "measured": measure,
        "part_columns": registry.part_columns_of(measure),
        "merge": registry.declared(measure).merge.function,
    }
    merge_job(inputs, {"table": target}, values, Resources())
    facts = read_metadata(target)
    return {key: value for key, value in facts.items() if key.endswith("sha256")}


def test_parts_of_several_snapshots_are_merged(tmp_path: Path) -> None:
    paths = []
    for snapshot, what in (("warmup", "snapshot warmup"), ("end", "checkpoint")):
        for batch in (0, 1):
            row = dict.fromkeys(HESSIAN_TABLE.columns, 1) | {"model": "vit", "snapshot": snapshot}
            rows = pd.DataFrame([row | {"batch": batch, "converged": True}])
            paths.append(tmp_path / f"{snapshot}{batch}.parquet")
            facts = {"data_sha256": "d", f"{what}_sha256": f"digest of {snapshot}"}
            HESSIAN_TABLE.write(rows, paths[-1], facts)
    target = tmp_path / "hessian.parquet"
    assert merged("hessian", {"parts": paths}, target) == {
        "data_sha256": "d",
        "snapshot warmup_sha256": "digest of warmup",
        "checkpoint_sha256": "digest of end",
    }
    table = HESSIAN_TABLE.read(target)
    assert table["snapshot"].tolist() == ["warmup"] * 2 + ["end"] * 2
    assert table["batch"].tolist() == [0, 1] * 2


def write_part(path: Path, of: str | None) -> Path:
    known = {"model": "vit", "snapshot": "end", "converged": True}
    row = dict.fromkeys(HESSIAN_TABLE.columns, 1) | known
    HESSIAN_TABLE.write(pd.DataFrame([row]), path, {"data_sha256": "d"} | ({OF: of} if of else {}))
    return path


@pytest.mark.parametrize("of", ["resnet", "resnet, snapshot init", "vit2"])
def test_a_part_of_another_model_is_refused(tmp_path: Path, of: str) -> None:
    paths = [
        write_part(tmp_path / str(n), each)
        for n, each in enumerate(["vit", None, "vit, snapshot init", of])
    ]
    target = tmp_path / "hessian.parquet"
    merged("hessian", {"parts": paths[:3]}, target)
    sentence = f"{paths[3]} is of {of} and not of vit: delete it and run again."
    assert refusal(merged, "hessian", {"parts": paths}, target) == sentence


def test_a_block_table_of_another_model_is_refused(tmp_path: Path) -> None:
    known = pd.read_csv(ROOT / "tests" / "expected" / "blocks.csv").query("model == 'resnet'")
    BLOCKS.write(known.reindex(columns=[*BLOCKS.columns]).assign(norm=None), tmp_path / "blocks")
    inputs = {"parts": [], "blocks": tmp_path / "blocks"}
    with pytest.raises(VitscopeError, match="blocks is of resnet and not of vit: delete it"):
        merged("feature_variance", inputs, tmp_path / "table")


def test_parts_of_both_models_of_a_pair_are_merged(tmp_path: Path) -> None:
    paths: dict[str, list[Path]] = {}
    for seed, name in enumerate(("parts", "other_parts")):
        maps = np.random.default_rng(seed).normal(size=(2, 8, 3, 2, 2)).astype(np.float32)
        latents = written(tmp_path / "latents", list(maps[: 2 - seed]))
        paths[name] = [tmp_path / f"{name}.parquet"]
        part = measure_cka_between(OnLatents(latents, 0), batch_size=4)
        facts = {"data_sha256": f"data of {name}", "checkpoint_sha256": f"weights of {name}"}
        between.CKA_BETWEEN_PART.write(part, paths[name][0], facts)
    target = tmp_path / "resnet+vit.parquet"
    assert merged("cka_between", paths, target, {"": "resnet", "other_": "vit"}) == {
        "data_sha256": "data of parts",
        "checkpoint_sha256": "weights of parts",
        "other_data_sha256": "data of other_parts",
        "other_checkpoint_sha256": "weights of other_parts",
    }
    table = between.CKA_BETWEEN_TABLE.read(target)
    assert set(table["model"]) == {"resnet"}
    assert set(table["other_model"]) == {"vit"}
    assert table[["index", "other_index"]].to_numpy().tolist() == [[0, 0], [1, 0]]


def bytes_read() -> int:
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts what is read")
@pytest.mark.parametrize("several", [True, False], ids=["one of several", "alone in its file"])
def test_a_merge_reads_the_rows_of_its_measure_once(tmp_path: Path, several: bool) -> None:
    """The parts of other measures in the file are ten times as large, and are not read."""
    part = Table("own", {"value": ("float64", "noise")})
    noise = np.random.default_rng(0).random(400_000)
    own = part.to_bytes(pd.DataFrame({"value": noise[:40_000]}))
    path = tmp_path / "0.parquet"
    if several:
        write_table_parts(
            {"other": part.to_bytes(pd.DataFrame({"value": noise})), "own": own}, path
        )
        assert path.stat().st_size > 9 * len(own)
    else:
        path.write_bytes(own)
    columns = {"columns": asdict(part), "part_columns": asdict(part)}
    values = {"models": {"": "vit"}, "settings": {}, "measured": "own", "merge": None, **columns}

    def merge() -> None:
        merge_job({"parts": [path]}, {"table": tmp_path / "table"}, values, Resources())

    merge()
    # All modules are imported now.
    before = bytes_read()
    merge()
    assert len(own) <= bytes_read() - before < 1.5 * len(own)


def test_a_network_of_noise_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(
        "from tests.networks.running.test_predictions import Noise\n"
    )
    noise = MINE["models"]["mine"] | {"arch": {"file": "noise.py", "make": "Noise"}, "classes": 5}
    settings = MINE | {"models": {"mine": noise}, "analysis": {"images": 10, "shard_size": 5}}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(settings))
    study = load_study(tmp_path / "study.yaml")
    inputs = {key: str(tmp_path / key) for key in ("checkpoint", "images", "blocks")}
    build_split_file("mine", asdict(study.data["mine"]), "test", Path(inputs["images"]))
    network = study.network("mine")
    convert_made(network, Path(inputs["checkpoint"]), label="mine", origin="made")

    def run(job: str, output: str, **names: str) -> None:
        work = find_job(job)
        values = work.values(study, {"model": "mine", **names})
        work.run(inputs, {output: str(tmp_path / output)}, values, Resources())

    run("convert_checkpoint", "blocks")
    first = {"part": "0"}
    for job, output, names in (
        ("measure_pass", "parts", first),
        ("extract_latents", "latents", first),
        ("predict", "predictions", {"split": "test"}),
        ("measure", "table", {"measure": "lesion", **first}),
    ):
        with pytest.raises(VitscopeError, match=r"^The network \(Noise\): two passes of the same"):
            run(job, output, **names)
        assert not (tmp_path / output).exists()
    # `vitscope check` says the same of it, and not what follows from it.
    entry = study.models["mine"]
    checked = check_network("mine", network, entry.read_at(), entry.checkpoint, "mine", ROOT)
    assert [wrong.partition(",")[0] for wrong in checked.proofs.wrong] == [
        "two passes of the same images differ"
    ]
    # Once is enough: what it costs is not paid for each part.
    run("measure_pass", "parts", part="1")
    assert (tmp_path / "parts").exists()
