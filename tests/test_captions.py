from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined

REPORT = Path(__file__).parents[1] / "report"
LINKS = "\n\n.. _Workflow: javascript:show_panel('workflow')\n.. _Statistics: javascript:x\n"
MEMBERS = [{"label": "ResNet-50"}, {"label": "ViT-Ti"}]
FACTS = {"study": "mini", "data": "shapes32, test", "checkpoint of vit": "ab" * 32}


def rendered(name: str, **snakemake: object) -> str:
    """Render with the settings of Snakemake's report; a slip in the markup is an error."""
    text = (REPORT / name).read_text(encoding="utf-8") + LINKS
    text = (
        Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
        .from_string(text)
        .render(snakemake=SimpleNamespace(**snakemake))
    )
    settings = {"halt_level": 2, "report_level": 2}
    parts = publish_parts(text, writer="html", settings_overrides=settings)
    return str(parts["html_body"])


def caption(published: object) -> str:
    params = SimpleNamespace(members=MEMBERS, facts=FACTS, published=published)
    return rendered("feature_variance.rst", params=params)


def test_the_caption_names_models_and_what_made_the_figure():
    html = caption(None)
    assert "ResNet-50, ViT-Ti." in html
    assert "Open markers" not in html
    for key, value in FACTS.items():
        assert f"<li>{key}: {value}</li>" in html.replace("<p>", "").replace("</p>", "")


def test_the_caption_sets_sentences_and_paragraphs_apart():
    html = caption({"series": {"resnet": "ResNet", "vit": "ViT"}, "same_models": True})
    paragraphs = [" ".join(part.split()) for part in html.replace("</p>", "").split("<p>")]
    assert "ResNet-50, ViT-Ti. The shade around a curve" in paragraphs[1]
    assert paragraphs[3].endswith("ResNet, ViT. They are of the same checkpoints.")
    assert paragraphs[4].startswith("<strong>Made from</strong>")


def test_the_caption_shows_what_a_study_says_as_it_is():
    odd = r"*a_ `b` |c| \d**"
    members, facts = [{"label": odd}], {f"Checkpoint of {odd}": odd, "Data": "https://host/a_b_"}
    html = rendered(
        "feature_variance.rst",
        params=SimpleNamespace(members=members, facts=facts, published=None),
    )
    assert html.count(odd) == 3
    assert "Data: https://host/a_b_<" in html


@pytest.mark.parametrize(
    ("same", "told"), [(True, "of the same checkpoints"), (False, "only the shapes compare")]
)
def test_the_caption_says_whose_points_are_published(same, told):
    html = caption({"series": {"vit": "ViT"}, "same_models": same})
    assert "Open markers" in html
    assert told in " ".join(html.split())


def test_the_text_of_the_report_names_the_study():
    html = rendered("workflow.rst", config={"study": "mini"})
    assert "mini" in html
