import pandas as pd
import pytest

from tests.helpers.claims import blocks, count


def curves(model: str, loss: float, test_loss: float) -> pd.DataFrame:
    """Return an epoch 0 without losses, one that does not count, and the last one."""
    rows = {"epoch": [0, 1, 2], "loss": [None, 5.0, loss], "test_loss": [None, 9.0, test_loss]}
    return pd.DataFrame(rows).assign(model=model)


CURVES = pd.concat([curves("vit", 1.5, 1.25), curves("resnet", 1.0, 1.5)])
EXAMPLES = {"training": {"learning_curves": CURVES, "blocks": blocks("vit", "resnet")}}


def counted(**settings: dict[str, object]) -> pd.DataFrame:
    traits = {model: {"training.mixup": 0.8} for model in ("vit", "resnet")} | settings
    return count("training", EXAMPLES["training"], ["vit", "resnet"], traits_of=traits)


def test_the_gap_is_that_of_the_last_epoch() -> None:
    (row,) = counted().to_dict("records")
    assert (row["model"], row["versus"]) == ("vit", "resnet")
    # By hand: 1.5 - 1.0 of the ResNet, minus 1.25 - 1.5 of the ViT.
    assert row["measured_value"] == pytest.approx(0.75, rel=1e-12)
    assert row["holds"] == "yes, without an interval"


@pytest.mark.parametrize("other", [{"training.mixup": 0.0}, {"training.images": 5}])
def test_trainings_on_other_images_are_not_compared(other: dict[str, object]) -> None:
    assert counted(resnet=other).empty
    assert len(counted(resnet={"training.mixup": 0.8, "training.seed": 3})) == 1
