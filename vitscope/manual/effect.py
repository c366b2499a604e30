"""List for each bundled network in how many MSAs the paper's effect is seen, and its accuracy."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

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
    fits: "Mapping[str, pd.DataFrame]",
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each network whose MSAs some figure counts, the most accurate first.

    `claims` and `fits` are tables of each study; networks whose accuracy `fits` lacks come last.
    """
    rows = [
        (accuracy, cells)
        for name, study in studies.items()
        for accuracy, cells in _list_of_study(study, claims[name], fits[name])
    ]
    for _, cells in sorted(rows, key=lambda row: -row[0]):
        yield cells


def _list_of_study(
    study: "Study", claims: "pd.DataFrame", fits: "pd.DataFrame"
) -> Iterator[tuple[float, tuple[str, ...]]]:
    counted = claims[claims["claim"].isin([*_OF]) & claims["snapshot"].isna()]
    errors = fits[fits["metric"] == "error_percent"].set_index("model")["value"]
    for model, rows in counted.groupby("model", sort=False):
        entry, recipe = study.models[str(model)], study.recipe(str(model))
        of_claim = rows.drop_duplicates("claim").set_index("claim")
        there = of_claim.index
        cells = (_count_as_text(of_claim.loc[each]) if each in there else "–" for each in _OF)
        accuracy = 100 - float(errors.get(model, 101))
        said = f"{accuracy:.1f} %" if accuracy >= 0 else "–"
        how = f"{recipe.epochs}, {recipe.learning_rate:g}"
        yield accuracy, (entry.label, f"`{study.name}`", entry.data, how, said, *cells)


def _count_as_text(row: Any) -> str:
    return f"{row['measured_count']:.0f} of {row['measured_total']:.0f}"
