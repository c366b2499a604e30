"""The tables of claims, and of how well measured curves agree with published ones."""

import pyarrow as pa

from vitscope.files.tables import Table

CLAIMS = Table(
    "claims",
    {
        "figure": (pa.string(), "figure that the claim is about"),
        "model": (pa.string(), "model, as the study names it"),
        "versus": (pa.string(), "model that it is compared with; null where the claim is of one"),
        "snapshot": (pa.string(), "moment of training; null where the figure is about none"),
        "claim": (pa.string(), "name of the claim"),
        "statement": (pa.string(), "the claim in words"),
        "source": (pa.string(), "where in the paper it is made"),
        "measure": (pa.string(), "what the values are: the share of what, or which difference"),
        "published_series": (pa.string(), "published curve, or curves, of the figure; or null"),
        "published_count": (pa.int32(), "on the published points: how many do as claimed"),
        "published_total": (pa.int32(), "of how many; null where a difference is taken"),
        "published_value": (pa.float64(), "their share, or the difference; null if unknown"),
        "measured_count": (pa.int32(), "as measured: how many do as claimed"),
        "measured_total": (pa.int32(), "of how many; null where a difference of values is taken"),
        "measured_value": (pa.float64(), "their share, or the difference; null if undefined"),
        "versus_count": (pa.int32(), "measured_count of the other model, where shares differ"),
        "versus_total": (pa.int32(), "measured_total of the other model, where shares differ"),
        "ci_low": (
            pa.float64(),
            "lower end of the 95 % interval of measured_value, or null",
        ),
        "ci_high": (pa.float64(), "upper end of the 95 % interval of measured_value; or null"),
        "holds_above": (pa.float64(), "the claim holds where measured_value is above this"),
        "holds": (
            pa.string(),
            "yes, no, or undecided where the interval contains holds_above; null where "
            "measured_value is",
        ),
    },
)

AGREEMENT = Table(
    "agreement",
    {
        "figure": (pa.string(), "figure that shows both curves"),
        "model": (pa.string(), "model, as the study names it"),
        "published_series": (pa.string(), "published curve, or curves, of the same checkpoint"),
        "published_points": (pa.int32(), "points that are published"),
        "measured_points": (pa.int32(), "points that are measured"),
        "rank_correlation": (pa.float64(), "Spearman's, where the published points lie, or null"),
        "normalized_rmse": (pa.float64(), "root mean square difference over the published range"),
    },
)
