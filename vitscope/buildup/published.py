"""The published build-up, as far as a figure shows it."""

from pathlib import Path

import pandas as pd

from vitscope.buildup.rule import BASELINE, KEPT, REJECTED
from vitscope.errors import VitscopeError

# What the paper built up, and on what.
SERIES = "AlterNet-50, CIFAR-100"


def read_steps(path: Path | str) -> pd.DataFrame:
    """Return the published steps with these columns of the table of a build-up.

    In the file a stage begins with the best network of those behind it, which is no step.
    """
    try:
        points = pd.read_csv(path)
        rows = list(zip(points["branch"], points["msa_number"], points["accuracy"], strict=True))
    except (OSError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise VitscopeError(
            f"Cannot read a published build-up from {path}: name a file of "
            "vitscope/claims/published_points/ with accuracies by number of MSAs."
        ) from error
    steps: list[dict[str, object]] = []
    best, before = float("-inf"), ""
    for stage, number, percent in rows:
        share = percent / 100
        if not steps:
            steps.append({"stage": None, "msas": number, "accuracy": share, "decision": BASELINE})
        elif stage == before:
            decision = KEPT if share > best else REJECTED
            steps.append({"stage": stage, "msas": number, "accuracy": share, "decision": decision})
        best, before = max(best, share), stage
    return pd.DataFrame(steps)
