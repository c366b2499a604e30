"""List what two studies measured contrary to the paper, claim by claim, with the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import mean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

# Verdicts begin with these words; "open" alone says that chance could decide either way.
FAILS, OPEN = "no", "open"
# A claim with more contrary rows in a study shows its range, and not each of them.
MOST = 12


def list_contrary(
    counted: "Mapping[str, pd.DataFrame]",
    labels: Mapping[str, Mapping[str, str]],
    published: "Mapping[str, str]",
) -> Iterator[str]:
    """Yield an item for each claim in `published` that some study contradicts.

    `counted` has the distinct rows of each study, `labels` the names of its models, `published`
    what the paper found for each claim, in words.
    """
    for claim, theirs in published.items():
        of_claim = {study: rows[rows["claim"] == claim] for study, rows in counted.items()}
        said = [
            text
            for study, rows in of_claim.items()
            for text in _of_study(study, rows, labels[study])
        ]
        if said:
            first = next(rows.iloc[0] for rows in of_claim.values() if len(rows))
            found = f"; there {theirs}" if theirs != "–" else ""
            yield f"- **{first['statement']}** ({first['source']}{found}).\n" + "\n".join(
                f"  - {each}" for each in said
            )


def _is_contrary(rows: Sequence[Mapping[Any, Any]]) -> bool:
    """Tell whether a claim fails, or is open with a value that speaks against it.

    `rows` are those of the trainings of a recipe, whose mean is the value, or of one network.
    """
    verdict = str(rows[0]["holds"])
    value = mean(row["measured_value"] for row in rows)
    return verdict.startswith(FAILS) or (
        verdict.startswith(OPEN) and value < rows[0]["holds_above"]
    )


def _of_study(study: str, rows: "pd.DataFrame", labels: Mapping[str, str]) -> Iterator[str]:
    """Yield what fails in a study, and what is open but has a contrary value."""
    recipes = [*_by_recipe(rows)]
    of = "pairs" if rows["versus"].notna().any() else "networks"
    for verdict, words in ((FAILS, "fails in"), (OPEN, "is open, the value contrary, in")):
        found = [
            each
            for each in recipes
            if _is_contrary(each) and str(each[0]["holds"]).startswith(verdict)
        ]
        if found:
            known = f"{len(found)} of {len(recipes)} {of}"
            yield f"`{study}`: {words} {known}: {_list_rows(found, labels)}."


def _by_recipe(rows: "pd.DataFrame") -> Iterator[list[dict[Any, Any]]]:
    """Yield the rows of each network or, where trainings are counted together, of each recipe."""
    groups: dict[Any, list[dict[Any, Any]]] = {}
    for number, row in enumerate(rows.to_dict("records")):
        recipe = row["trainings"] > 1 and (str(row["snapshot"]), row["recipe"])
        groups.setdefault(recipe or number, []).append(row)
    yield from groups.values()


def _list_rows(found: list[list[dict[Any, Any]]], labels: Mapping[str, str]) -> str:
    import pandas as pd

    from vitscope.claims.report import finding_as_text
    from vitscope.claims.verdicts import say_doubt

    counted = pd.notna(found[0][0]["measured_total"])
    if len(found) > MOST:
        values = sorted(row["measured_value"] for rows in found for row in rows)
        return f"{found[0][0]['measure']} {values[0]:+.3f} to {values[-1]:+.3f}"
    said = []
    for rows in found:
        first, values = rows[0], [finding_as_text(row, "measured") for row in rows]
        if counted and len(values) > 1:
            values = [value.partition(" of ")[0] for value in values[:-1]] + values[-1:]
        said.append(f"{_name(first, labels)} {', '.join(values)}{say_doubt(first)}")
    what = "" if counted else f"{found[0][0]['measure']}: "
    return what + "; ".join(said)


def _name(row: Mapping[Any, Any], labels: Mapping[str, str]) -> str:
    name = labels[row["model"]]
    if isinstance(row["versus"], str):
        name += f" against {labels[row['versus']]}"
    return f"{name} ({row['snapshot']})" if isinstance(row["snapshot"], str) else name
