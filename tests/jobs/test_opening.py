"""A network two of whose passes differ is refused by the first part of whatever is measured."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from vitscope.data.building import build
from vitscope.errors import VitscopeError
from vitscope.jobs.job import Resources, find_work
from vitscope.networks.checkpoints.conversion import convert_made
from vitscope.networks.running.checking import check_model
from vitscope.package_data import ROOT
from vitscope.studies.loading import load_study

STUDY: dict[str, Any] = {
    "title": "noise",
    "data": {
        "images": {
            "source": {"kind": "shapes32"},
            "classes": 10,
            "image_size": 32,
            "mean": [0.5] * 3,
            "std": [0.25] * 3,
            "splits": {"test": {"images": 8}},
        }
    },
    "models": {
        "net": {
            "family": "python",
            "arch": {"file": "noise.py", "make": "Noise"},
            "data": "images",
            "classes": 5,
            "checkpoint": {"made": True},
        }
    },
    "analysis": {"images": 8, "shard_size": 4},
    "figures": {"fig9": {"kind": "feature_variance", "models": ["net"]}},
}


def test_a_network_of_noise_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.py").write_text(
        "from tests.networks.running.test_predictions import Noise\n"
    )
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(STUDY))
    study = load_study(tmp_path / "study.yaml")
    inputs = {key: str(tmp_path / key) for key in ("checkpoint", "images", "blocks")}
    build("images", asdict(study.data["images"]), "test", Path(inputs["images"]))
    network = study.network("net")
    convert_made(network, Path(inputs["checkpoint"]), label="net", origin="made")

    def run(job: str, output: str, **names: str) -> None:
        work = find_work(job)
        values = work.JOB.values(study, {"model": "net", **names})
        work.run(inputs, {output: str(tmp_path / output)}, values, Resources())

    run("list_blocks", "blocks")
    first = {"part": "0"}
    for job, output, names in (
        ("measure_pass", "parts", first),
        ("extract_latents", "latents", first),
        ("predict", "predictions", {"split": "test"}),
        ("measure_model", "table", {"measure": "lesion", **first}),
    ):
        with pytest.raises(VitscopeError, match=r"^The network \(Noise\): two passes of the same"):
            run(job, output, **names)
        assert not (tmp_path / output).exists()
    # `vitscope check` says the same of it, and not what follows from it.
    entry = study.models["net"]
    checked = check_model("net", network, entry.read_at(), entry.checkpoint, "net", ROOT)
    assert [wrong.partition(",")[0] for wrong in checked.proofs.wrong] == [
        "two passes of the same images differ"
    ]
    # Once is enough: what it costs is not paid for each part.
    run("measure_pass", "parts", part="1")
    assert (tmp_path / "parts").exists()
