from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vitscope.claims.claim import Claim, Evidence, every_model
from vitscope.claims.intervals import RESAMPLED
from vitscope.claims.points import Points
from vitscope.claims.statistics import Found, Statistic, excess_of_alike_pairs, value_of
from vitscope.drawing.figure import Members, rows_of
from vitscope.drawing.similarity import (
    SimilarityMap,
    draw_similarity_maps,
    panels_of_similarity_maps,
)
from vitscope.errors import VitscopeError
from vitscope.files.arrays import Array


def _cka_matrix_to_draw(table: str, pairs: pd.DataFrame, height: int, width: int, of: str) -> Array:
    """Return the CKA of sorted pairs of cut points as a matrix; `of` names models in errors."""
    if len(pairs) != height * width:
        raise VitscopeError(
            f"The {table} table has {len(pairs)} pairs of cut points of the {of}: delete the "
            f"tables and run again."
        )
    return pairs["cka"].to_numpy(np.float64).reshape(height, width)


def plot_cka(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw one map per model: the CKA of all pairs of cut points, and the blocks between them."""
    panels = panels_of_similarity_maps(len(members))
    maps = []
    for panel, member in zip(panels.of_models(members, blocks), members, strict=True):
        pairs = table[table["model"] == member.model].sort_values(["index", "other_index"])
        count = len(panel.rows)
        of = f"model '{member.model}', which has {count} cut points"
        values = _cka_matrix_to_draw("cka", pairs, count, count, of)
        maps.append(SimilarityMap(values, panel.rows))
    draw_similarity_maps(panels, maps, "CKA")
    panels.label("Normalized depth", "Normalized depth")
    return panels.figure


def _depth_label(label: str) -> str:
    words = f"Normalized depth of {label}"
    return fill(words, 30, break_long_words=False, break_on_hyphens=False)


def plot_cka_between(table: pd.DataFrame, blocks: pd.DataFrame, members: Members) -> Figure:
    """Draw one map per pair in the table, in its order: the first model across, the second up."""
    label = {member.model: member.label for member in members}
    pairs = list(table[["model", "other_model"]].drop_duplicates().itertuples(False, None))
    panels = panels_of_similarity_maps(len(pairs), between=True)
    maps = []
    for axes, (first, second) in zip(panels.axes, pairs, strict=True):
        across, up = (rows_of(blocks, model, ["index"]) for model in (first, second))
        both = (table["model"] == first) & (table["other_model"] == second)
        rows = table[both].sort_values(["other_index", "index"])
        of = f"models '{first}' and '{second}', which have {len(across)} and {len(up)}"
        values = _cka_matrix_to_draw("cka_between", rows, len(up), len(across), of)
        maps.append(SimilarityMap(values, up, across))
        axes.set_xlabel(_depth_label(label[first]))
        axes.set_ylabel(_depth_label(label[second]))
    draw_similarity_maps(panels, maps, "CKA")
    return panels.figure


def _cka_excess_within_stages(pairs: Points) -> Found | None:
    """Return the excess of CKA within stages, and its jackknife pseudo-value for each batch."""
    found = excess_of_alike_pairs(pairs, "cka", "within")
    if found is None:
        return None
    whole, without = found.values[0], found.values[1:]
    count = len(without)
    return value_of(whole, batches=count * whole - (count - 1) * without)


def _cka_pairs_in_stages(rows: pd.DataFrame, blocks: pd.DataFrame) -> pd.DataFrame:
    stage = blocks.set_index("index")["stage"]
    pairs = rows.assign(
        distance=rows["other_index"] - rows["index"],
        stage=rows["index"].map(stage),
        other_stage=rows["other_index"].map(stage),
    )
    pairs = pairs[(pairs["distance"] > 0) & (pairs["stage"] > 0) & pairs["cka"].notna()]
    # Use the CKA without each batch in turn in place of resamples.
    pairs = pairs.rename(columns={"cka_without": f"cka{RESAMPLED}"})
    return pairs.assign(within=pairs["stage"] == pairs["other_stage"]).reset_index(drop=True)


CLAIMS_CKA = Evidence(
    "cka",
    (
        Claim(
            "stages_are_blocks",
            "Feature maps are more similar within a stage than across stages",
            "Fig. 10a",
            every_model,
            Statistic(
                "difference of CKA",
                "The value is the mean CKA of two cut points in one stage minus the mean CKA "
                "of two cut points in different stages at the same distance, averaged over "
                "distances. The stem is left out. A model with one stage has no such claim. "
                "The interval is Student's over batches of images, of the pseudo-values of "
                "the jackknife; fewer than 20 batches have none.",
                _cka_excess_within_stages,
            ),
            "The paper's Fig. 10a.",
        ),
    ),
    _cka_pairs_in_stages,
)
