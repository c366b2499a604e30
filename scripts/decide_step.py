"""Decide what a step of a build-up tries, from the results of those before it."""

from scripts._job import job
from vitscope.buildup.table import RESULT, scores_of
from vitscope.buildup.tried import write_tried
from vitscope.buildup.trying import decide, plan_of

with job(snakemake):
    settings = snakemake.params.settings
    scores = scores_of([RESULT.read(path) for path in snakemake.input.results])
    tried = decide(settings["baseline"], plan_of(settings), scores)
    write_tried(tried, snakemake.output.tried)
