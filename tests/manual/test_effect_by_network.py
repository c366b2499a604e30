import pandas as pd

from vitscope.manual.effect_by_network import HEAD, list_effects
from vitscope.studies.loading import BUNDLED_STUDIES, load_study

CIFAR = load_study(BUNDLED_STUDIES / "cifar100.yaml")
REDUCES = ("msa_reduces_variance", "msa_reduces_high_frequency")


def counted(model: str, claim: str, count: int, snapshot: str | None = None) -> dict[str, object]:
    row = {"model": model, "claim": claim, "measured_count": count, "measured_total": 6}
    return row | {"snapshot": snapshot}


def test_networks_stand_by_accuracy_with_what_is_counted_of_each() -> None:
    claims = pd.DataFrame(
        [
            counted("vit_light", REDUCES[0], 5),
            counted("vit_light", REDUCES[0], 1, "epoch_10"),
            counted("vit_light", "mlp_increases_variance", 6),
            counted("vit_authors", REDUCES[0], 6),
            counted("vit_authors", REDUCES[1], 3),
        ]
    )
    error = {"metric": "error_percent", "value": 40.0}
    other = {"metric": "nll_train", "value": 1.0}
    fits = pd.DataFrame([{"model": "vit_light", **each} for each in (other, error)])
    first, second = list_effects({"own": CIFAR}, {"own": claims}, {"own": fits})
    found = dict(zip(HEAD, first, strict=True))
    assert found["network"] == "ViT, light recipe"
    assert (found["accuracy"], found["epochs, rate"]) == ("60.0 %", "40, 0.0005")
    assert (found["MSAs that lower variance"], found["MSAs that lower high frequencies"]) == (
        "5 of 6",
        "–",
    )
    # What the table lacks has the accuracy at the end of its bundled history.
    file = "resources/checkpoints/cifar100/vit_authors/history.parquet"
    accuracy = pd.read_parquet(BUNDLED_STUDIES.parents[1] / file)["test_accuracy"].iloc[-1]
    assert second[HEAD.index("accuracy")] == f"{100 * accuracy:.1f} %"
    assert second[-4:] == ("6 of 6", "–", "–", "3 of 6")
