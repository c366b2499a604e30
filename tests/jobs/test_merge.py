"""Parts are merged to a table that says where all of them come from."""

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.helpers.latents import written
from vitscope.errors import VitscopeError
from vitscope.files.tables import OF, Table, read_metadata, write_parts
from vitscope.jobs.job import Resources
from vitscope.jobs.merge import run
from vitscope.measures import registry
from vitscope.measures.cka import measure as between
from vitscope.measures.cka.compute import measure_cka_between
from vitscope.measures.given import OnLatents
from vitscope.measures.hessian.measure import HESSIAN_TABLE
from vitscope.networks.finding.cut_point_columns import BLOCKS

ROOT = Path(__file__).parents[2]


def merging_of(measure: str) -> dict[str, Any]:
    return {
        "columns": registry.columns_of(measure),
        "measured": measure,
        "part_columns": registry.part_columns_of(measure),
        "modules": [registry.merging(measure)],
    }


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
    values = {"models": {"": "vit"}, "settings": {}, **merging_of("hessian")}
    run({"parts": paths}, {"table": target}, values, Resources())
    merged = HESSIAN_TABLE.read(target)
    assert merged["snapshot"].tolist() == ["warmup"] * 2 + ["end"] * 2
    assert merged["batch"].tolist() == [0, 1] * 2
    facts = read_metadata(target)
    assert {key: value for key, value in facts.items() if key.endswith("sha256")} == {
        "data_sha256": "d",
        "snapshot warmup_sha256": "digest of warmup",
        "checkpoint_sha256": "digest of end",
    }


def write_part(path: Path, of: str | None) -> Path:
    row = dict.fromkeys(HESSIAN_TABLE.columns, 1) | {
        "model": "vit",
        "snapshot": "end",
        "converged": True,
    }
    HESSIAN_TABLE.write(pd.DataFrame([row]), path, {"data_sha256": "d"} | ({OF: of} if of else {}))
    return path


@pytest.mark.parametrize("of", ["resnet", "resnet, snapshot init", "vit2"])
def test_a_part_of_another_model_is_refused(tmp_path: Path, of: str) -> None:
    paths = [
        write_part(tmp_path / str(n), each)
        for n, each in enumerate(["vit", None, "vit, snapshot init", of])
    ]
    target = tmp_path / "hessian.parquet"
    values = {"models": {"": "vit"}, "settings": {}, **merging_of("hessian")}
    run({"parts": paths[:3]}, {"table": target}, values, Resources())
    sentence = f"{paths[3]} is of {of} and not of vit: delete it and run again."
    with pytest.raises(VitscopeError, match=re.escape(sentence)):
        run({"parts": paths}, {"table": target}, values, Resources())


def test_a_block_table_of_another_model_is_refused(tmp_path: Path) -> None:
    known = pd.read_csv(ROOT / "tests" / "expected" / "blocks.csv").query("model == 'resnet'")
    BLOCKS.write(known.reindex(columns=[*BLOCKS.columns]).assign(norm=None), tmp_path / "blocks")
    values = {"models": {"": "vit"}, "settings": {}, **merging_of("feature_variance")}
    inputs = {"parts": [], "blocks": tmp_path / "blocks"}
    with pytest.raises(VitscopeError, match="blocks is of resnet and not of vit: delete it"):
        run(inputs, {"table": tmp_path / "table"}, values, Resources())


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
    models = {"": "resnet", "other_": "vit"}
    values = {"models": models, "settings": {}, **merging_of("cka_between")}
    run(paths, {"table": target}, values, Resources())
    merged = between.CKA_BETWEEN_TABLE.read(target)
    assert set(merged["model"]) == {"resnet"}
    assert set(merged["other_model"]) == {"vit"}
    assert merged[["index", "other_index"]].to_numpy().tolist() == [[0, 0], [1, 0]]
    facts = read_metadata(target)
    assert {key: value for key, value in facts.items() if key.endswith("sha256")} == {
        "data_sha256": "data of parts",
        "checkpoint_sha256": "weights of parts",
        "other_data_sha256": "data of other_parts",
        "other_checkpoint_sha256": "weights of other_parts",
    }


def bytes_read() -> int:
    """Return how many bytes this process has read so far."""
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
        write_parts({"other": part.to_bytes(pd.DataFrame({"value": noise})), "own": own}, path)
        assert path.stat().st_size > 9 * len(own)
    else:
        path.write_bytes(own)
    columns = {"columns": asdict(part), "part_columns": asdict(part)}
    values = {"models": {"": "vit"}, "settings": {}, "measured": "own", "modules": [], **columns}

    def merge() -> None:
        run({"parts": [path]}, {"table": tmp_path / "table"}, values, Resources())

    merge()
    # All modules are imported now.
    before = bytes_read()
    merge()
    assert len(own) <= bytes_read() - before < 1.5 * len(own)
