import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from tests.helpers.claims import blocks, count, verdicts


def ratios(model: str, positions: list[float], class_token: list[float] | None = None):
    depth = np.linspace(0.25, 1, len(positions))
    kinds = {"positions": positions} | ({"class_token": class_token} if class_token else {})
    rows = [pd.DataFrame({"depth": depth, "ratio": v, "tokens": k}) for k, v in kinds.items()]
    return pd.concat(rows).assign(model=model)


def tables(*of_models: pd.DataFrame) -> dict[str, pd.DataFrame]:
    models = [each["model"].iloc[0] for each in of_models]
    return {"skip_ratio": pd.concat(of_models, ignore_index=True), "blocks": blocks(*models)}


VIT = ratios("vit", [2, 4, 8, 16], [16, 8, 4, 2])
EXAMPLES = {"skip_ratio": tables(VIT, ratios("resnet", [1, 2, 1, 2]))}


def test_two_models_are_counted_as_by_hand() -> None:
    found = count("skip_ratio", EXAMPLES["skip_ratio"], ["vit", "resnet"]).set_index("claim")
    more = found.loc["shortcuts_of_attention_carry_more"]
    assert more["measured_value"] == pytest.approx(2 * np.log(2), rel=1e-12)
    assert found.loc["class_token_passes_first", "measured_value"] == 1


def test_without_a_class_token_there_is_one_claim() -> None:
    of = tables(ratios("vit", [2, 4, 8]), ratios("resnet", [3, 4, 9]))
    found = verdicts(count("skip_ratio", of, ["vit", "resnet"]))
    assert len(found) == 1


def test_a_branch_of_zeros_does_not_count() -> None:
    of = tables(ratios("vit", [2, 4, np.nan]), ratios("resnet", [1, 1, 1]))
    found = count("skip_ratio", of, ["vit", "resnet"])
    assert found["measured_value"].tolist() == pytest.approx([1.5 * np.log(2)], rel=1e-12)


def test_resamples_are_counted_as_pandas_and_scipy_count_each() -> None:
    generator = np.random.default_rng(0)
    drawn = [generator.lognormal(0, 0.6, (11, 4)) for _ in range(3)]
    of = tables(ratios("vit", [2, 4, 8, 16], [16, 8, 9, 3]), ratios("resnet", [1, 2, 1, 2]))
    table = of["skip_ratio"]
    values = table["ratio"].to_numpy() * np.hstack(drawn)
    of["skip_ratio"] = table.assign(ratio_resampled=[*values.T])
    found = count("skip_ratio", of, ["vit", "resnet"]).set_index("claim")
    token_passes, carries = [], []
    for row in values:
        cell = table.assign(log=np.log(row)).pivot(
            index="depth", columns=["model", "tokens"], values="log"
        )
        vit = cell["vit"]
        token_passes.append(-spearmanr(cell.index, vit["class_token"] - vit["positions"])[0])
        carries.append(vit["positions"].mean() - cell["resnet"]["positions"].mean())
    for claim, values in (
        ("class_token_passes_first", token_passes),
        ("shortcuts_of_attention_carry_more", carries),
    ):
        ends = found.loc[claim, ["measured_low", "measured_high"]].tolist()
        assert ends == pytest.approx(np.percentile(values, [2.5, 97.5]), rel=1e-12)
