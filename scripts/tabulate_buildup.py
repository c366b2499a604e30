"""Write the table of a build-up from the results of its steps, and its best network."""

from scripts._job import job
from vitscope.buildup.best import as_model
from vitscope.buildup.table import BUILDUP, RESULT, digests_of, scores_of, tabulated
from vitscope.buildup.trying import plan_of
from vitscope.files.tables import read_metadata
from vitscope.files.whole import write_text

with job(snakemake):
    params, name = snakemake.params, snakemake.wildcards.buildup
    plan = plan_of(params.settings)
    results = [RESULT.read(path) for path in snakemake.input.results]
    digests = digests_of([read_metadata(path) for path in snakemake.input.results])
    BUILDUP.write(tabulated(name, plan, results), snakemake.output.table, digests)
    best = as_model(
        name,
        plan,
        scores_of(results),
        baseline=params.settings["baseline"],
        data=params.data,
        weights=params.weights,
    )
    write_text(snakemake.output.model, best)
