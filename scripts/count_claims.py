"""Count the claims of the paper that the figures of a study are about."""

from scripts._job import job

import pandas as pd

from vitscope.claims.counting import (
    CLAIMS,
    as_sections,
    at_snapshots,
    count_claims,
    introduction,
    score_agreement,
    tables_needed,
    together,
)
from vitscope.claims.published import read_published_of
from vitscope.files.pages import as_html, as_markdown
from vitscope.files.tables import read_table, write_table
from vitscope.files.whole import write_text

with job(snakemake):
    figures = {n: f for n, f in snakemake.params.figures.items() if f["kind"] in CLAIMS}
    kinds = [figure["kind"] for figure in figures.values()]
    tables = {name: read_table(name, snakemake.input[name]) for name in tables_needed(kinds)}
    tables["blocks"] = pd.concat(
        [read_table("blocks", path) for path in snakemake.input.cut_points], ignore_index=True
    )
    claims, agreement = [], []
    for name, figure in figures.items():
        published = read_published_of(figure, snakemake.input.published)
        shown = at_snapshots(tables, snakemake.params.snapshots.get(name, []))
        claims.append(count_claims(name, figure["kind"], shown, figure["models"], published))
        agreement.append(score_agreement(name, figure["kind"], shown, published))
    claims, agreement = together("claims", claims), together("agreement", agreement)
    write_table("claims", claims, snakemake.output.claims)
    write_table("agreement", agreement, snakemake.output.agreement)
    title = f"Claims of the paper: {snakemake.params.study}"
    text, sections = introduction(claims), as_sections(claims, agreement, snakemake.params.labels)
    write_text(snakemake.output.text, as_markdown(title, text, sections))
    write_text(snakemake.output.page, as_html(title, text, sections))
