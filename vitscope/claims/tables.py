"""The tables of claims, and of how well measured curves agree with published ones."""

from vitscope.files.tables import Table

CLAIMS = Table(
    "claims",
    {
        "figure": ("string", "figure that the claim is about"),
        "model": ("string", "model, as the study names it"),
        "versus": ("string", "model that it is compared with; null where the claim is of one"),
        "snapshot": ("string", "moment of training; null where the figure is about none"),
        "claim": ("string", "name of the claim"),
        "statement": ("string", "the claim in words"),
        "source": ("string", "where in the paper it is made"),
        "measure": ("string", "what the values are: the share of what, or which difference"),
        "published_series": ("string", "published curve, or curves, of the figure; or null"),
        "published_count": ("int32", "on the published points: how many do as claimed"),
        "published_total": ("int32", "of how many; null where a difference is taken"),
        "published_value": ("float64", "their share, or the difference; null if unknown"),
        "measured_count": ("int32", "as measured: how many do as claimed"),
        "measured_total": ("int32", "of how many; null where a difference of values is taken"),
        "measured_value": ("float64", "their share, or the difference; null if undefined"),
        "versus_count": ("int32", "measured_count of the other model, where shares differ"),
        "versus_total": ("int32", "measured_total of the other model, where shares differ"),
        "ci_low": ("float64", "lower end of the 95 % interval of measured_value, or null"),
        "ci_high": ("float64", "upper end of the 95 % interval of measured_value; or null"),
        "holds_above": ("float64", "the claim holds where measured_value is above this"),
        "holds": (
            "string",
            "yes, no, or undecided where the interval contains holds_above; yes or no, without an "
            "interval, where there is none; null where measured_value is",
        ),
    },
)

AGREEMENT = Table(
    "agreement",
    {
        "figure": ("string", "figure that shows both curves"),
        "model": ("string", "model, as the study names it"),
        "published_series": ("string", "published curve, or curves, of the same checkpoint"),
        "published_points": ("int32", "points that are published"),
        "measured_points": ("int32", "points that are measured"),
        "rank_correlation": ("float64", "Spearman's, where the published points lie, or null"),
        "normalized_rmse": ("float64", "root mean square difference over the published range"),
    },
)
