"""Claims, counted on tables that are made for a test.

The test of a measure's claims has `EXAMPLES`: for each kind of figure, tables that its claims can
be counted on, for the tests of all kinds; and `TRAITS` of the models, where claims go by these.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vitscope.claims.agreement import score_agreement
from vitscope.claims.claim import Evidence
from vitscope.claims.counting import count_by_recipe, count_claims
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import PublishedCurve, read_published_points
from vitscope.measures import registry
from vitscope.package_data import PUBLISHED_POINTS

# The cut points of models whose claims are not about single blocks.
KINDS_OF = {
    "vit": ["stem", "msa", "mlp"],
    "resnet": ["stem", "conv", "conv"],
    "alternet": ["stem", "conv", "msa"],
    "mixer": ["stem", "mixing", "mlp"],
}


def blocks(*models: str) -> pd.DataFrame:
    rows = [
        {"model": model, "index": index, "kind": kind, "stage": min(index, 1)}
        for model in models
        for index, kind in enumerate(KINDS_OF[model])
    ]
    return pd.DataFrame(rows)


def variances(model: str, kinds: list[str], sizes: list[int], variance) -> pd.DataFrame:
    """Return a table of feature map variances, which has the columns of the blocks too."""
    count = len(kinds)
    return pd.DataFrame(
        {
            "model": model,
            "index": range(count),
            "kind": kinds,
            "depth": np.arange(count) / (count - 1),
            "height": sizes,
            "width": sizes,
            "variance": np.asarray(variance, dtype=float),
        }
    )


def with_resamples(table: pd.DataFrame, column: str, deviation: Any) -> pd.DataFrame:
    """Add to a table its values in resamples, normal ones around those of a column."""
    noise = np.random.default_rng(0).standard_normal((len(table), 400))
    spread = np.broadcast_to(np.asarray(deviation, float), len(table))[:, None]
    values = table[column].to_numpy()[:, None] + spread * noise
    return table.assign(**{f"{column}{RESAMPLED}": [*values.astype(np.float32)]})


def published_variances(depth, variance, same_model: bool = True) -> dict[str, PublishedCurve]:
    """Return a published curve of Convs, for the model `m`."""
    points = pd.DataFrame({"index": range(len(depth)), "depth": depth, "variance": variance})
    points = points.assign(kind="conv", subsampling=False)
    return {"m": PublishedCurve("Theirs", points, same_model)}


def count_variances(table: pd.DataFrame, theirs=None) -> pd.DataFrame:
    models = list(dict.fromkeys(table["model"]))
    return count("feature_variance", {"feature_variance": table, "blocks": table}, models, theirs)


def kinds_with_claims() -> list[str]:
    kinds = registry.kinds()
    return [kind for kind in kinds if kinds[kind].claims]


def evidence(kind: str) -> Evidence:
    """Return what the claims of a kind of figure are counted on."""
    return registry.claims_of(registry.kinds()[kind].measure)[kind]


def published(
    kind: str, file: str, series: dict[str, str], same_models: bool = False
) -> dict[str, PublishedCurve]:
    return read_published_points(
        PUBLISHED_POINTS / file, registry.kinds()[kind].published, series, same_models
    )


def count(
    kind: str, tables: dict[str, pd.DataFrame], models: list[str], theirs=None, traits_of=None
):
    traits = traits_of or {}
    return count_by_recipe(
        count_claims("fig", evidence(kind), tables, models, theirs or {}, traits), {}
    )


def count_alone(kind: str, table: pd.DataFrame, theirs=None) -> pd.DataFrame:
    """Count the claims of a figure on one table; return them by claim and model."""
    tables = {evidence(kind).table: table, "blocks": blocks(*KINDS_OF)}
    models = list(dict.fromkeys(table["model"]))
    return count(kind, tables, models, theirs).set_index(["claim", "model"])


def agreement(kind: str, table: pd.DataFrame, theirs: dict[str, PublishedCurve]) -> pd.DataFrame:
    """Score one table, which has the columns of the blocks too."""
    found = evidence(kind)
    tables = {found.table: table, "blocks": table}
    return score_agreement("fig", found, tables, theirs)


def in_favour(row: Mapping[str, Any]) -> bool | None:
    """Tell whether a value is in favour of its claim, whatever chance says; None without one."""
    value = row["measured_value"]
    return None if pd.isna(value) else bool(value > row["holds_above"])


def favoured(claims: pd.DataFrame) -> list[bool | None]:
    return [in_favour(row) for row in claims.to_dict("records")]


def in_favour_by_claim(kind: str, table: pd.DataFrame) -> dict[str, tuple[float, bool | None]]:
    """Return by claim what is measured of a model `m`, and whether it is in favour."""
    claims = count(kind, {evidence(kind).table: table, "blocks": table}, ["m"])
    rows = claims.to_dict("records")
    return {row["claim"]: (row["measured_value"], in_favour(row)) for row in rows}


def verdicts(claims: pd.DataFrame) -> dict[tuple[str, ...], tuple]:
    """Return count, total and whether the value is in favour, by claim and models."""
    claims = claims.astype(object).where(claims.notna(), None)
    return {
        tuple(row[key] for key in ("claim", "model", "versus") if row[key]): (
            row["measured_count"],
            row["measured_total"],
            in_favour(row),
        )
        for row in claims.to_dict("records")
    }
