import pytest

from vitscope.jobs.describing import title_of_figure
from vitscope.studies.loading import BUNDLED_STUDIES, load_study


@pytest.mark.parametrize("name", ["mini", "cifar100"])
def test_figures_of_a_report_have_titles_of_their_own(name: str) -> None:
    study = load_study(BUNDLED_STUDIES / f"{name}.yaml")
    titles = [title_of_figure(study, figure) for figure in study.figures]
    assert len(titles) == len({*titles}) > 30


def test_models_stand_in_titles_where_they_tell_figures_apart() -> None:
    study = load_study(BUNDLED_STUDIES / "mini.yaml")
    shown = "Feature map variance by depth: ResNet (scenes); ViT (scenes)"
    assert title_of_figure(study, "fig9") == shown
    assert title_of_figure(study, "figD1").endswith(": PiT; Swin; 3 more")
    assert (
        title_of_figure(study, "fig10a") == "Similarity of the feature maps at all pairs of depths"
    )
