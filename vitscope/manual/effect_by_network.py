"""List for each bundled network in how many MSAs the paper's effect is seen, and its accuracy."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from vitscope.package_data import ROOT

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.settings.study import Study

# What MSAs lower: by claim, the head of a column.
_OF = {
    "msa_reduces_variance": "variance",
    "msa_reduces_share": "share within images",
    "msa_reduces_normalized_variance": "normalized variance",
    "msa_reduces_high_frequency": "high frequencies",
}
HEAD = (
    "network",
    "study",
    "images",
    "epochs, rate",
    "accuracy",
    *(f"MSAs that lower {what}" for what in _OF.values()),
)


def list_effects(
    studies: "Mapping[str, Study]",
    claims: "Mapping[str, pd.DataFrame]",
    fits: "Mapping[str, pd.DataFrame | None]",
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each network whose MSAs some figure counts, the most accurate first.

    `claims` and `fits` are tables of each study. A network that `fits` lacks has the accuracy at
    the end of its bundled history; without one it comes last.
    """
    rows = [
        (accuracy, cells)
        for name, study in studies.items()
        for accuracy, cells in _list_of_study(study, claims[name], fits[name])
    ]
    for _, cells in sorted(rows, key=lambda row: -row[0]):
        yield cells


def _list_of_study(
    study: "Study", claims: "pd.DataFrame", fits: "pd.DataFrame | None"
) -> Iterator[tuple[float, tuple[str, ...]]]:
    counted = claims[claims["claim"].isin([*_OF]) & claims["snapshot"].isna()]
    errors: dict[str, float] = {}
    if fits is not None:
        of_fit = fits[fits["metric"] == "error_percent"]
        errors = dict(zip(of_fit["model"], of_fit["value"], strict=True))
    for name, rows in counted.groupby("model", sort=False):
        model = str(name)
        entry, recipe = study.models[model], study.recipe(model)
        of_claim = rows.drop_duplicates("claim").set_index("claim")
        counts = {
            claim: f"{row['measured_count']:.0f} of {row['measured_total']:.0f}"
            for claim, row in of_claim.iterrows()
        }
        accuracy = 100 - errors[model] if model in errors else _last_accuracy(entry.history)
        said = "–" if accuracy is None else f"{accuracy:.1f} %"
        how = f"{recipe.epochs}, {recipe.learning_rate:g}"
        cells = [counts.get(each, "–") for each in _OF]
        yield accuracy or 0.0, (entry.label, f"`{study.name}`", entry.data, how, said, *cells)


def _last_accuracy(history: "Mapping[str, Any] | None") -> float | None:
    """Return the test accuracy in percent at the end of a bundled history, if there is one."""
    import pandas as pd

    if not history:
        return None
    return float(100 * pd.read_parquet(ROOT / history["bundled"])["test_accuracy"].iloc[-1])
