"""The grid of verdicts, against the table of claims of the default study."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from tests.helpers.drawing import styled
from tests.helpers.shown import flaws
from vitscope.claims.across_networks import common_statement
from vitscope.claims.counting import distinct_claims
from vitscope.drawing.claims_grid import plot_claims_grid, rows_of_grid
from vitscope.drawing.looks import VERDICT_LOOKS
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

MINI = load_study(BUNDLED_STUDIES / "mini.yaml")
LABELS = {name: model.label for name, model in MINI.models.items()}
RECIPES = {model: group[0] for group in MINI.repeats for model in group}
EXPECTED = Path(__file__).parents[1] / "expected" / "claims.csv"


@pytest.fixture(scope="module")
def claims() -> pd.DataFrame:
    """The table of claims; the lists that text does not keep are made of its rows again."""
    found = pd.read_csv(EXPECTED)
    of_runs = distinct_claims(found).groupby(["recipe", "claim"])["measured_count"].agg(list)
    keys = zip(found["recipe"], found["claim"], strict=True)
    return found.assign(values=[of_runs.get(key) for key in keys])


@pytest.fixture(scope="module")
def grid(claims: pd.DataFrame) -> Figure:
    return styled(plot_claims_grid, claims, LABELS, RECIPES)


def cells_of(figure: Figure) -> dict[tuple[str, str], tuple[str, str, str]]:
    """Return the count, the colour and the style of each cell, by its statement and column."""
    (axes,) = figure.axes
    texts = {text: text.get_position() for text in axes.texts}
    columns = {x: text.get_text() for text, (x, _) in texts.items() if text.get_rotation() == 90}
    rows = {y: " ".join(text.get_text().split()) for text, (x, y) in texts.items() if x == 0}
    found = {}
    for box in (patch for patch in axes.patches if isinstance(patch, Rectangle)):
        x, y = box.get_x() + box.get_width() / 2, box.get_y() + box.get_height() / 2
        (text,) = [t for t, (a, b) in texts.items() if abs(a - x) < 1e-6 and abs(b - y) < 1e-6]
        column = columns[min(columns, key=lambda at: abs(at - x))]
        row = rows[min(rows, key=lambda at: abs(at - y))]
        found[row, column] = text.get_text(), to_hex(box.get_facecolor()), text.get_fontstyle()
    return found


def test_a_cell_says_how_many_blocks_do_as_claimed_and_a_recipe_has_one(claims, grid):
    cells = cells_of(grid)
    rows = distinct_claims(claims[claims["claim"] == "msa_reduces_variance"]).set_index("model")
    statement = "MSAs reduce the feature map variance"
    scenes = rows.loc["vit_scenes"]
    count, color, _ = cells[statement, "ViT (scenes)"]
    assert count == f"{scenes['measured_count']:.0f}/{scenes['measured_total']:.0f}"
    assert color != VERDICT_LOOKS["yes"].color
    trainings = rows.loc[["vit", "vit_1", "vit_2"], "measured_count"]
    low, high = f"{trainings.min():.0f}", f"{trainings.max():.0f}"
    count, color, _ = cells[statement, "ViT (×3)"]
    assert count == f"{low}–{high}/{rows.loc['vit', 'measured_total']:.0f}"
    # A verdict on a recipe has the full colour of the verdict.
    assert color == VERDICT_LOOKS[rows.loc["vit", "holds"]].color
    assert not [name for _, name in cells if "seed" in name]


def test_every_claim_with_a_verdict_has_a_cell_for_each_network_or_recipe(claims, grid):
    known = distinct_claims(claims[claims["holds"].notna()])
    models = known["model"].map(lambda model: RECIPES.get(model, model))
    assert len(cells_of(grid)) == len({*zip(known["claim"], models, strict=True)})


def test_pairs_and_moments_of_a_network_share_a_cell_that_says_in_how_many(claims, grid):
    rows = distinct_claims(claims[claims["claim"] == "msa_has_smaller_positive_eigenvalues"])
    of_vit = rows[rows["model"] == "vit"]
    assert len(of_vit) > 1
    count, _, slant = cells_of(grid)[common_statement(of_vit), "ViT (×3)"]
    assert count == f"{of_vit['holds'].str.startswith('yes').sum()}/{len(of_vit)}"
    assert slant == "oblique"


def test_claims_of_the_paper_come_first_and_the_key_names_every_verdict(claims, grid):
    (axes,) = grid.axes
    heads = [text.get_text() for text in axes.texts if text.get_weight() == "bold"]
    assert heads == ["Claims of the paper", "Other claims"]
    said = {text.get_text() for text in grid.legends[0].get_texts()}
    assert {VERDICT_LOOKS[each].meaning for each in claims["holds"].dropna()} < said
    assert flaws(grid) == []
    assert Counter(text.get_fontsize() < 6 for text in axes.texts)[True] == 0


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_key_is_whole_and_above_the_grid_where_networks_are_few(claims, count):
    models = [*dict.fromkeys(claims["model"])][:count]
    figure = styled(plot_claims_grid, claims[claims["model"].isin(models)], LABELS, RECIPES)
    (key,) = figure.legends
    for dpi in (72, 100, 130, 300):
        figure.set_dpi(dpi)
        figure.draw_without_rendering()
        assert flaws(figure) == []
        highest = max(text.get_window_extent().y1 for text in figure.axes[0].texts)
        assert key.get_window_extent().y0 >= highest
        assert key.get_window_extent().x1 <= figure.bbox.x1


def test_rows_are_where_their_cells_are_drawn(claims, grid):
    (axes,) = grid.axes
    places = rows_of_grid(grid)
    assert {*places} == {*claims.loc[claims["holds"].notna(), "claim"]}
    texts = {text.get_text() for text in axes.texts if text.get_gid()}
    assert len(texts) == len(places)
    boxes = {(box.get_y(), box.get_height()) for box in axes.patches if isinstance(box, Rectangle)}
    high = grid.get_figheight()
    drawn = sorted((top / high, height / high) for top, height in boxes)
    assert sorted(places.values()) == [pytest.approx(each, abs=1e-9) for each in drawn]


def test_a_study_without_verdicts_has_an_empty_grid(claims):
    figure = styled(plot_claims_grid, claims.iloc[:0], LABELS, RECIPES)
    assert not figure.axes[0].texts
