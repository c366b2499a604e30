import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils.core import publish_parts
from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure

from tests.helpers.refusals import refusal
from vitscope.drawing.looks import FREQUENCY_BANDS, PROBE_STYLES, SHARE_STYLES
from vitscope.drawing.saving import save, style
from vitscope.files.pages import as_rst
from vitscope.jobs.describing import MEASURED_ON, MeasuredOn
from vitscope.measures import captions, registry
from vitscope.measures.captions import LEGENDS, caption_of, in_markdown, sentence_of, title_of
from vitscope.measures.registry import kinds
from vitscope.package_data import STYLE

REPORT = Path(__file__).parents[2] / "report"
LINKS = "\n\n.. _Workflow: javascript:show_panel('workflow')\n.. _Statistics: javascript:x\n"
MEMBERS = [{"label": "ResNet-50"}, {"label": "ViT-Ti"}]
TEXT = "What it shows, and how to read it.\n"
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


WORDS = {
    "#5e3c99": "purple",
    "#b35806": "brown",
    "#a6a600": "olive",
    "#c9a227": "ochre",
    "#7f7f7f": "gray",
}
MARKS = {"o": "circles", "s": "squares", "^": "triangles", "v": "triangles", "D": "diamonds"}
STYLES = {
    "spectrum": FREQUENCY_BANDS,
    "probe": {name: PROBE_STYLES[name] for name in ("mean token", "prefix token", "single token")},
    "probe_tokens": {name: PROBE_STYLES[name] for name in ("position", "pixels")},
    "variance_by_epoch": SHARE_STYLES,
    "share_by_epoch": SHARE_STYLES,
}


@pytest.mark.parametrize("kind", STYLES)
def test_a_caption_calls_colours_and_markers_what_they_are(kind: str) -> None:
    said = caption_of(kinds()[kind]).lower()
    for look in STYLES[kind].values():
        assert f"{WORDS[look['color']]} {MARKS[look['marker']]}" in said
    assert not re.search(r"\bred\b", said)


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("averaging", "where none does"),
        ("averaging", "a bin of fewer than ten images"),
        ("feature_variance", "trainings of one network with other seeds"),
        ("feature_variance", "*No point*: the map has one position"),
        ("spatial_share", "*No point*: the map has one position"),
        ("normalized_variance", "*No point*: the map has one position"),
        ("shape_texture", "*Third panel*, which is there only for images that people"),
        ("attention_entropy", "*Dashed*: the largest possible entropy"),
    ],
)
def test_a_caption_says_what_is_shown(kind: str, shown: str) -> None:
    assert shown in " ".join(caption_of(kinds()[kind]).split())


def given(**values: object) -> SimpleNamespace:
    """Return the parameters of a rule: the values of its job, and what its figure says."""
    usual = {"members": MEMBERS, "facts": FACTS, "published": None, "caption": TEXT}
    return SimpleNamespace(values=usual | values | {"rst": as_rst}, measured=MeasuredOn(None))


def caption(published: object) -> str:
    return rendered("figure.rst", params=given(published=published))


def test_a_caption_says_on_how_many_images_as_the_file_does(tmp_path: Path) -> None:
    svg = tmp_path / "a.svg"
    with style(STYLE):
        save(Figure(), svg, "a", {"Data": "x; y", MEASURED_ON: "4 batches, 1,000 images"})
    params = given()
    params.measured = MeasuredOn(str(svg))
    html = " ".join(rendered("figure.rst", params=params).split())
    assert "<p><strong>Measured on</strong> 4 batches, 1,000 images.</p>" in html
    assert "Measured on" not in caption(None)


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_of_figure_says_what_it_shows_and_how_to_read_it(kind):
    text = caption_of(kinds()[kind])
    html = rendered("figure.rst", params=given(caption=text))
    own = html.partition("Models:")[0]
    bold = re.findall("<strong>(.+?)</strong>", own.replace("\n", " "))
    assert {"How to read it.", "What to look for."} <= set(bold[1:])
    # What has no blank line before it is no list.
    assert "<p>- " not in own
    assert not re.search(r"^- .*\n- ", re.sub("<.+?>", "", own), re.MULTILINE)
    # It names its tables and the figures of the paper.
    (source,) = re.findall(r"^\*.*; from the tables? ?\*.*\n", text, re.MULTILINE)
    assert re.match(
        r"\*(Fig\. \w+( and Fig\. [\w.]+)? of the paper|Not in the paper|Fig\. \S+)", source
    )
    for table in kinds()[kind].tables:
        assert f"``{table}``" in source


def test_every_caption_is_of_a_kind():
    files = {*registry.HERE.glob("*/*.rst")}
    assert files == {registry.folder(kind.measure) / kind.caption for kind in kinds().values()}


def test_what_captions_share_is_said_once():
    texts = [" ".join(file.read_text().split()) for file in registry.HERE.glob("*/*.rst")]
    for name, said in LEGENDS.items():
        assert any(f"{{{name}}}" in text for text in texts), name
        assert not any(" ".join(said.split()) in text for text in texts), name


def test_the_sentence_behind_the_title_has_no_marks():
    assert sentence_of(kinds()["attention_low_pass"]) == (
        "When the mean of all tokens is taken from each, what is left are their high frequencies."
    )
    assert sentence_of(kinds()["spatial_share"]).endswith(
        "as in Fig. 9, over their variance over "
        "space and images together, each a mean over channels."
    )
    for kind in kinds().values():
        assert 20 < len(sentence_of(kind)) < 400
        assert not re.search(r"[*`{}\n]", sentence_of(kind)), kind.name
        assert sentence_of(kind) in re.sub(r"[*`]", "", " ".join(caption_of(kind).split()))


def test_a_caption_begins_with_its_title(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kinds()["fourier_depth"]
    assert title_of(kind) == "High-frequency component of the feature maps by depth"
    assert all(title_of(each) for each in kinds().values())
    monkeypatch.setattr(captions, "caption_of", lambda kind: "What is seen by depth.")
    assert refusal(title_of, kind) == (
        "The caption fourier/caption_fourier_depth.rst begins with 'What is seen by dept', "
        "allowed: a title, as **Title.**"
    )


def test_a_caption_in_markdown_says_the_same():
    text = "**Title.**\nThe ``cut`` of *n*,\n`Li et\nal. <https://host/a>`_.\n\n- *a*: ``b\n  c``\n"
    assert in_markdown(text) == (
        "**Title.**\nThe `cut` of *n*,\n[Li et\nal.](https://host/a).\n\n- *a*: `b\n  c`\n"
    )


def test_the_caption_names_models_and_what_made_the_figure():
    html = caption(None)
    assert "</strong> ResNet-50, ViT-Ti." in html
    assert "Open markers" not in html
    for key, value in FACTS.items():
        assert f"<li>{key}: {value}</li>" in html.replace("<p>", "").replace("</p>", "")


def test_the_caption_shows_what_a_study_says_as_it_is():
    odd = r"*a_ `b` |c| \d**"
    members, facts = [{"label": odd}], {f"Checkpoint of {odd}": odd, "Data": "https://host/a_b_"}
    html = rendered("figure.rst", params=given(members=members, facts=facts))
    assert html.count(odd) == 3
    assert "Data: https://host/a_b_<" in html


@pytest.mark.parametrize(
    ("same", "sentence"), [(True, "to the same checkpoints"), (False, "compare only the shapes")]
)
def test_the_caption_says_whose_points_are_published(same, sentence):
    html = caption({"series": {"vit": "ViT"}, "same_models": same})
    assert "Open markers" in html
    assert sentence in " ".join(html.split())
