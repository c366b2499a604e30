"""The tables of a build-up: the result of one network, and a table with a row per network."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pandas as pd

from vitscope.buildup.rule import Plan, follow_buildup, stage_name
from vitscope.claims.intervals import share_interval
from vitscope.data.split import Split, known_labels
from vitscope.errors import VitscopeError
from vitscope.files.tables import Table
from vitscope.files.tensors import TensorFile

if TYPE_CHECKING:
    import torch

# The metadata key of the digest of the images.
DATA = "data_sha256"
# The metadata key of the digest of a step's weights begins with this, before the step's number.
STEP = "step_"

RESULT = Table(
    "buildup_result",
    {
        "parameters": ("int64", "parameters of the network"),
        "images": ("int64", "number of test images"),
        "correct": ("int64", "how many of them have the class that the network says"),
    },
)

BUILDUP = Table(
    "buildup",
    {
        "buildup": ("string", "build-up, as the study names it"),
        "step": ("int32", "number of the network, 0 for the baseline"),
        "stage": ("string", "stage that got one MSA more, c1 to c4; null for the baseline"),
        "msas": ("int32", "MSA blocks in all stages together"),
        "attention": ("string", "MSA blocks of each stage, from the first to the last"),
        **RESULT.columns,
        "accuracy": ("float64", "that share"),
        "ci_low": ("float64", "lower end of its 95 % interval (Wilson)"),
        "ci_high": ("float64", "upper end of its 95 % interval (Wilson)"),
        "best": ("float64", "accuracy that it had to beat; null for the baseline"),
        "decision": ("string", "baseline; kept if it is better than that, or else rejected"),
        "next": ("string", "what is tried next: stage and MSAs in all; or why nothing is"),
    },
)


def scores_of(results: pd.DataFrame) -> list[float]:
    """Return the accuracies that decide the course, one for each step."""
    scores: list[float] = (results["correct"] / results["images"]).tolist()
    return scores


def tabulate_buildup(name: str, plan: Plan, results: pd.DataFrame) -> pd.DataFrame:
    """Return a build-up's table from the results of its steps, in order."""
    course = follow_buildup(plan, scores_of(results))
    reasons = {"stages": "no stage is left", "steps": "no more steps are asked for"}
    end = course.next.label if course.next else f"ended: {reasons[course.ended]}"
    following = [*(step.candidate.label for step in course.steps[1:]), end]
    rows = []
    for number, step in enumerate(course.steps):
        counted = results.iloc[number].to_dict()
        low, high = share_interval(counted["correct"], counted["images"])
        rows.append(
            {
                "buildup": name,
                "step": number,
                "stage": stage_name(step.candidate.stage) or None,
                "msas": step.candidate.number,
                "attention": ", ".join(map(str, step.candidate.attention)),
                **counted,
                "accuracy": step.score,
                "ci_low": low,
                "ci_high": high,
                "best": step.best,
                "decision": step.decision,
                "next": following[number],
            }
        )
    return pd.DataFrame(rows)


def digest_of_step(step: int) -> str:
    """Return the metadata key of the digest of a step's weights."""
    return f"{STEP}{step}_sha256"


def label_buildup_digests(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return the digests in the table's metadata, labelled as in figures."""
    steps = {key: digest for key, digest in metadata.items() if key.startswith(STEP)}
    labelled = {"Data SHA-256": metadata[DATA]} if DATA in metadata else {}
    numbers = {int(key.split("_")[1]): digest for key, digest in steps.items()}
    return labelled | {f"Checkpoint SHA-256 of step {n}": numbers[n] for n in sorted(numbers)}


def refuse_missing_buildup_weights(
    network: Mapping[str, Any], where: str, weights: Path | None = None
) -> NoReturn:
    """Refuse to go on without a network's weights; the file `weights`, if given, does not fit."""
    found = "" if weights is None else f" ({weights} are of another)"
    raise VitscopeError(
        f"{where}: there are no weights of the network that is tried next, with "
        f"{network['arch']['attention']} MSA blocks in its stages{found}: leave the key out, so "
        f"that it is trained."
    )


def score_buildup_network(
    weights: Path,
    network: Mapping[str, Any],
    images: Split,
    where: str,
    batch_size: int,
    device: "torch.device",
) -> pd.DataFrame:
    """Return the result of a network on all images; an error about its weights names `where`."""
    import safetensors.torch

    from vitscope.networks.building.networks import fill, uninitialized_network
    from vitscope.networks.checkpoints.translation import find_misfits
    from vitscope.networks.running.predictions import predict

    model = uninitialized_network(network)
    TensorFile(weights).verify()
    found = safetensors.torch.load_file(weights)
    if any(find_misfits(found, model.state_dict())):
        refuse_missing_buildup_weights(network, where, weights)
    rows = range(len(images))
    batches = images.batches(rows, batch_size, network["mean"], network["std"])
    predictions = predict(fill(model, found), batches, known_labels(images, rows), device)
    return pd.DataFrame(
        {
            "parameters": [sum(parameter.numel() for parameter in model.parameters())],
            "images": [len(predictions)],
            "correct": [int((predictions["label"] == predictions["prediction"]).sum())],
        }
    )
