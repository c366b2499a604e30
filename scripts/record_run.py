"""Write down what made the results of a study."""

from scripts._job import job
from vitscope.files.pages import text_as_html
from vitscope.files.whole import write_text
from vitscope.workflow.provenance import run_record

with job(snakemake):
    record = run_record(
        snakemake.wildcards.study,
        snakemake.params.study,
        snakemake.input.checkpoints,
        snakemake.input.data,
        [path for path in snakemake.input if path.endswith(".parquet")],
        snakemake.params.root,
    )
    write_text(snakemake.output.record, record)
    page = text_as_html(f"Record of the run: {snakemake.wildcards.study}", record)
    write_text(snakemake.output.page, page)
