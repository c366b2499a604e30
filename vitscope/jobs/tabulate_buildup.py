"""Write the table of a build-up from the results of its steps, and its best network."""

from vitscope.jobs import buildups
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    name = names["buildup"]
    return {
        "name": name,
        "settings": buildups.plan(study, name),
        "data": study.models[study.buildups[name].baseline].data,
    }


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write a row per step, with what was decided; and the best network as a model of a study.

    The rule adds `weights` to the values: where a study finds them for each step.
    """
    from vitscope.buildup.rule import describe_model, plan_of
    from vitscope.buildup.table import BUILDUP, RESULT, digests_of, scores_of, tabulate
    from vitscope.files.tables import read_metadata
    from vitscope.files.whole import write_text

    name, settings = values["name"], values["settings"]
    plan = plan_of(settings)
    results = [RESULT.read(path) for path in inputs["results"]]
    digests = digests_of([read_metadata(path) for path in inputs["results"]])
    BUILDUP.write(tabulate(name, plan, results), outputs["table"], digests)
    best = describe_model(
        name,
        plan,
        scores_of(results),
        baseline=settings["baseline"],
        data=values["data"],
        weights=values["weights"],
    )
    write_text(outputs["model"], best)
