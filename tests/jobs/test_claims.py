import re
from base64 import b64decode
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd

from tests.helpers.claims import count_variances, evidence, variances, with_resamples
from vitscope.jobs.claims import introduce_study_in_report
from vitscope.networks.finding.cut_points import BLOCKS
from vitscope.package_data import ROOT, STYLE

VALUES: dict[str, Any] = {"study": "mine (a <small> one)", "description": "For tests."}
VALUES |= {"data": "shapes32, 10 classes", "labels": {"a": "ViT", "b": "Other", "c": "ViT (6 %)"}}
VALUES |= {"name": "mine", "shown": {"fig9": {"question": "What blocks do", "change": False}}}


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
    inputs = {"cut_points": [tmp_path / name for name in "abc"], "style": STYLE}
    claims = pd.concat([claims, alone]).assign(figure="fig9")
    rows = {"msa_reduces_variance": (0.25, 0.5)}
    page = introduce_study_in_report(claims, [evidence("feature_variance")], rows, inputs, VALUES)
    assert "<h1>mine (a &lt;small&gt; one)</h1>" in page
    assert "<p>Images: shapes32, 10 classes.</p>" in page
    said = " ".join(page.split())
    counted = "0 hold and 1 fail in one network, 1 hold and 0 fail without an interval, 1 are open."
    assert f"3 claims: {counted}" in said
    assert "Chance may have decided 0 of 3 tested rows on one network." in said
    # What was found, as a link to its figure; and a row of the grid, at its place.
    (card,) = re.findall(r'<div class="findings">\n<a href="(.*?)">(.*?)</a>', page)
    assert "Other (0 of 2 MSAs)" in card[1] or "ViT (0 of 2 MSAs)" in card[1]
    (row,) = re.findall(r'<a href="(.*?)" style="top: 25.000%; height: 50.000%"', page)
    assert row == card[0]
    assert 'labels?.result === "fig9" && results[path].labels.study === "mine"' in unescape(row)
    pictures = re.findall(r'<img alt="(.*?)" src="data:image/svg\+xml;base64,(.*?)">', page)
    assert [label for label, _ in pictures] == [
        "Blocks of ViT, ViT (6 %), and their multiply-adds",
        "Blocks of Other (read after the norms of sums), and their multiply-adds",
    ]
    assert all("Multiply-adds" in b64decode(svg).decode() for _, svg in pictures)
