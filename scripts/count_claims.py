"""Count the claims of the paper that the figures of a study are about."""

from importlib import import_module

import pandas as pd

from scripts._job import job
from vitscope.claims.counting import (
    at_snapshots,
    count_claims,
    joined,
    score_agreement,
)
from vitscope.claims.published import read_published_of
from vitscope.claims.report import doubts, introduction, sections
from vitscope.claims.tables import AGREEMENT, CLAIMS
from vitscope.files.pages import as_html, as_markdown
from vitscope.files.tables import read_warnings
from vitscope.files.whole import write_text
from vitscope.networks.finding.block_table import BLOCKS

with job(snakemake):
    figures = snakemake.params.figures
    evidence = {
        name: found
        for name, figure in figures.items()
        if (found := import_module(figure["module"]).CLAIMS.get(figure["kind"]))
    }
    needed = {each.table.name: each.table for each in evidence.values()}
    tables = {name: table.read(snakemake.input[name]) for name, table in needed.items()}
    tables["blocks"] = pd.concat(
        [BLOCKS.read(path) for path in snakemake.input.cut_points], ignore_index=True
    )
    claims, agreement = [], []
    for name, found in evidence.items():
        figure = figures[name]
        published = read_published_of(
            figure["published"], set(figure["columns"]), snakemake.input.published
        )
        shown = at_snapshots(tables, figure["snapshots"])
        claims.append(count_claims(name, found, shown, figure["models"], published))
        agreement.append(score_agreement(name, found, shown, published))
    claims, agreement = joined(CLAIMS, claims), joined(AGREEMENT, agreement)
    CLAIMS.write(claims, snakemake.output.claims)
    AGREEMENT.write(agreement, snakemake.output.agreement)
    page = (
        f"Claims of the paper: {snakemake.params.study}",
        introduction(claims),
        [
            *doubts(read_warnings(p for p in snakemake.input if p.endswith(".parquet"))),
            *sections(
                claims,
                agreement,
                snakemake.params.labels,
                evidence.values(),
                snakemake.params.repeats,
            ),
        ],
    )
    write_text(snakemake.output.text, as_markdown(*page))
    write_text(snakemake.output.page, as_html(*page))
