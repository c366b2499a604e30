"""`max_latents_gb`: how much of the latents exists at once, watched while a run is at work."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch

from tests.helpers.watching import watched
from tests.runs.copies import Workflow, copy_workflow, edited, write_study
from vitscope.jobs.tables import find_table
from vitscope.networks.building.family import find_family

pytestmark = pytest.mark.nightly

STUDY = "waves"
IMAGES, SHARD = 128, 32
TARGETS = tuple(f"figures/{STUDY}/{figure}.pdf" for figure in ("fig8", "fig9", "between"))
ARCHS: dict[str, dict[str, Any]] = {
    "resnet": {"block": "basic", "blocks": [1, 1, 1, 1], "width": 16},
    "vit": {"patch_size": 4, "embed_dim": 96, "depth": 2, "num_heads": 2},
}


@pytest.fixture(scope="module")
def workflow(tmp_path_factory: pytest.TempPathFactory) -> Workflow:
    """A copy with a study of two models, one on larger images, so that its shards are larger."""
    folder = tmp_path_factory.mktemp("waves")

    def waves(settings: dict[str, Any]) -> None:
        settings["data"]["shapes32"]["splits"]["test"]["images"] = IMAGES
        large = {"image_size": 48, "resize": 48}
        settings["data"]["large"] = settings["data"]["shapes32"] | large
        settings["models"]["vit"]["data"] = "large"
        for name, model in settings["models"].items():
            size = settings["data"][model["data"]]["image_size"]
            network = find_family(name).build(ARCHS[name], 10, size)
            file = folder / f"{name}.pth.tar"
            torch.save({"state_dict": network.state_dict()}, file)
            model |= {"arch": ARCHS[name], "checkpoint": {"path": str(file)}}
        settings["analysis"] |= {"images": IMAGES, "shard_size": SHARD, "batch_size": SHARD}
        # Those of small networks are kept, and then there is no bound.
        settings["analysis"]["keep_latents"] = False
        settings["figures"]["fig8"] = {"kind": "fourier_depth", "models": list(ARCHS)}
        settings["figures"]["between"] = {"kind": "cka_between", "pairs": [list(ARCHS)]}
        settings["analysis"]["cka"] = {"batch_size": SHARD}

    studies = folder / "studies"
    studies.mkdir()
    write_study(studies / f"{STUDY}.yaml", waves)
    return copy_workflow(folder / "copy", studies)


@contextmanager
def bounded(workflow: Workflow, most: float) -> Iterator[None]:
    """Let latents take so many bytes."""
    settings = workflow.root / "config" / "config.yaml"
    with edited(settings, lambda text: f"{text}max_latents_gb: {most / 1e9}\n"):
        yield


def most_at_once(workflow: Workflow) -> int:
    """Measure everything again; return the most bytes of latents that existed at once."""
    rules = ("extract_latents", "measure_latents")
    with watched(workflow.root / "results" / STUDY / "latents") as sizes:
        workflow.make("--cores", "4", *TARGETS, "--forcerun", *rules)
    return max(sizes)


def shard_bytes(workflow: Workflow, model: str) -> int:
    blocks = find_table("blocks").read(workflow.root / f"results/{STUDY}/blocks/{model}.parquet")
    values = blocks["channels"] * blocks["height"] * blocks["width"]
    return int(values.sum()) * SHARD * 4


def test_latents_never_take_more_than_the_bound(workflow: Workflow) -> None:
    free = most_at_once(workflow)
    sizes = [shard_bytes(workflow, model) for model in ARCHS]
    # Sizes are known in whole megabytes, and one more.
    bound = sum(sizes) + 4_000_000
    with bounded(workflow, bound):
        most = most_at_once(workflow)
    assert max(sizes) <= most <= bound < free, (sizes, most, bound, free)


def test_a_bound_makes_nothing_again(workflow: Workflow) -> None:
    with bounded(workflow, 1e9):
        assert workflow.plan(*TARGETS) == {}


def test_a_bound_below_one_shard_is_refused(workflow: Workflow) -> None:
    with bounded(workflow, 1e6):
        code, output = workflow.run("--cores", "2", *TARGETS, "--forcerun", "extract_latents")
    assert code == 1
    assert "lower analysis.shard_size, or raise max_latents_gb." in output
    assert "Traceback" not in output
