"""The introduction of a study: its words, and a picture for networks that are alike."""

import re
from base64 import b64decode
from pathlib import Path

import pandas as pd

from tests.helpers.claims import count_variances, variances, with_resamples
from vitscope.claims.tables import CLAIMS
from vitscope.jobs.job import Resources
from vitscope.jobs.reporting import introduce_study
from vitscope.networks.finding.cut_point_columns import BLOCKS
from vitscope.package_data import ROOT, STYLE

VALUES = {
    "study": "mine (a <small> one)",
    "description": "For tests.",
    "data": "shapes32, 10 classes",
    "labels": {"a": "ViT", "b": "Other", "c": "ViT (6 %)"},
}


def test_a_study_is_introduced(tmp_path: Path) -> None:
    known = pd.read_csv(ROOT / "tests" / "expected" / "blocks.csv")
    for name, model in (("a", "vit"), ("b", "resnet"), ("c", "vit")):
        rows = known[known["model"] == model].assign(model=name)
        filled = rows.reindex(columns=[*BLOCKS.columns]).fillna(0)
        BLOCKS.write(filled.assign(norm="after" if name == "b" else None), tmp_path / name)
    # MSAs that raise the variance, by what images leave certain and by what they leave open.
    curve = variances("a", ["stem", "msa", "msa"], [8] * 3, range(3))
    counted = [count_variances(with_resamples(curve, "variance", each)) for each in (0.01, 9)]
    claims = pd.concat([each.assign(model=m) for each, m in zip(counted, "ab", strict=True)])
    alone = claims.iloc[:1].assign(claim="alone", holds="yes, without an interval")
    CLAIMS.write(pd.concat([claims, alone]), tmp_path / "claims")
    inputs = {
        "claims": tmp_path / "claims",
        "cut_points": [tmp_path / name for name in "abc"],
        "style": STYLE,
    }
    introduce_study(inputs, {"page": tmp_path / "page.html"}, VALUES, Resources())
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h1>mine (a &lt;small&gt; one)</h1>" in page
    assert "<p>Images: shapes32, 10 classes.</p>" in page
    said = " ".join(page.split())
    counted = "0 hold and 1 fail in one network, 1 hold and 0 fail without an interval, 1 are open."
    assert f"Of 3 claims {counted}" in said
    assert "Of 3 tested rows 0 may be decided by chance." in said
    pictures = re.findall(r'<img alt="(.*?)" src="data:image/svg\+xml;base64,(.*?)">', page)
    assert [label for label, _ in pictures] == [
        "ViT, ViT (6 %)",
        "Other (read after the norms of sums)",
    ]
    assert all("Multiply-adds" in b64decode(svg).decode() for _, svg in pictures)
