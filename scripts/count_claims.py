"""Count the claims of the paper that the figures of a study are about."""

import pandas as pd

from scripts._job import job
from vitscope.claims import CLAIMS, RULE, as_sections, count_claims, score_agreement
from vitscope.figures import KINDS
from vitscope.files import write_text
from vitscope.pages import as_html, as_markdown
from vitscope.published import read_published_of
from vitscope.tables import read_table, write_table

with job(snakemake):
    claims, agreement = [], []
    for name, figure in snakemake.params.figures.items():
        kind = figure["kind"]
        if kind not in CLAIMS:
            continue
        table = read_table(KINDS[kind].tables[0], snakemake.input[KINDS[kind].tables[0]])
        published = read_published_of(figure, snakemake.input.published)
        claims.append(count_claims(name, kind, table, figure["models"], published))
        agreement.append(score_agreement(name, kind, table, published))
    claims, agreement = (pd.concat(rows, ignore_index=True) for rows in (claims, agreement))
    write_table("claims", claims, snakemake.output.claims)
    write_table("agreement", agreement, snakemake.output.agreement)
    title = f"Claims of the paper: {snakemake.params.study}"
    sections = as_sections(claims, agreement, snakemake.params.labels)
    write_text(snakemake.output.text, as_markdown(title, RULE, sections))
    write_text(snakemake.output.page, as_html(title, RULE, sections))
