"""Draw a figure from its tables, in every format."""

from scripts._job import job

import pandas as pd

from vitscope.claims.published import read_published_of
from vitscope.drawing import canvas
from vitscope.drawing.kinds import KINDS, Member, draw
from vitscope.files.tables import read_metadata, read_table

with job(snakemake):
    params = snakemake.params
    tables = {
        name: pd.concat([read_table(name, path) for path in snakemake.input[name]])
        for name in KINDS[params.kind].tables
    }
    members = [
        Member(**{**member, "label": canvas.literal(member["label"])}) for member in params.members
    ]
    figure = {"kind": params.kind, "published": params.published}
    published = read_published_of(figure, snakemake.input.published)
    facts = dict(params.facts)
    main = snakemake.input[KINDS[params.kind].tables[0]]
    for member, path in zip(params.members, main, strict=True):
        for key, digest in read_metadata(path).items():
            if key.endswith("_sha256"):
                name = key.removesuffix("_sha256").capitalize()
                facts[f"{name} SHA-256 of {member['label']}"] = digest
    with canvas.style(snakemake.input.style):
        figure = draw(params.kind, tables, members, published, params.snapshots)
        for path in snakemake.output:
            canvas.save(figure, path, snakemake.wildcards.figure, facts)
