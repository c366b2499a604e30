"""Draw a figure from its tables, in every format."""

from importlib import import_module
from pathlib import Path

import pandas as pd

from scripts._job import job
from vitscope.claims.published import read_published_of
from vitscope.drawing.figure import Member, draw
from vitscope.drawing.saving import save, style
from vitscope.drawing.text import literal
from vitscope.files.pairs import by_prefix, split_prefix
from vitscope.files.tables import read_metadata

with job(snakemake):
    params = snakemake.params
    tables = []
    for name, module in params.tables.items():
        columns = getattr(import_module(module), "BLOCKS" if name == "blocks" else "TABLE")
        tables.append(pd.concat([columns.read(path) for path in snakemake.input[name]]))
    members = [Member(**{**member, "label": literal(member["label"])}) for member in params.members]
    published = read_published_of(
        params.published, set(params.published_columns), snakemake.input.published
    )
    facts = dict(params.facts)
    labels = {member["model"]: member["label"] for member in params.members}
    for path in snakemake.input[next(iter(params.tables))]:
        # The name of a table says which model it is of, or which pair.
        models = by_prefix(Path(path).stem)
        for key, digest in read_metadata(path).items():
            if key.endswith("_sha256"):
                prefix, what = split_prefix(key.removesuffix("_sha256"))
                facts[f"{what.capitalize()} SHA-256 of {labels[models[prefix]]}"] = digest
    with style(snakemake.input.style):
        figure = draw(params.module, tables, members, published, params.snapshots)
        for path in snakemake.output:
            save(figure, path, snakemake.wildcards.figure, facts)
