"""Decide what a step of a build-up tries, from the results of those before it."""

from vitscope.jobs import buildups
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    return {"settings": buildups.plan(study, names["buildup"])}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.buildup.rule import decide, plan_of, write_proposal
    from vitscope.buildup.table import RESULT, scores_of

    settings = values["settings"]
    scores = scores_of([RESULT.read(path) for path in inputs["results"]])
    write_proposal(decide(settings["baseline"], plan_of(settings), scores), outputs["tried"])
