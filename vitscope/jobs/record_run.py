"""Write down what made the results of a study."""

from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values
from vitscope.measures import registry
from vitscope.package_data import ROOT


def splits_shown(study: Study) -> list[tuple[str, str]]:
    """Return the data sets and splits that the figures of a study are made from."""
    shown = {
        (study.models[model].data, name)
        for measure in study.measures()
        for model in study.models_of(measure)
        for name in registry.of(study).declared(measure).splits(study)
    }
    return sorted(shown)


def _values(study: Study, names: Names) -> Values:
    return {"name": study.name, "study": study.settings}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    """Write the record, and a page of it."""
    from vitscope.files.pages import text_as_html
    from vitscope.files.whole import write_text
    from vitscope.jobs.provenance import run_record

    name, tables = values["name"], []
    for given in inputs.values():
        paths = [given] if isinstance(given, str) else given
        tables += [path for path in paths if path.endswith(".parquet")]
    record = run_record(
        name, values["study"], inputs["checkpoints"], inputs["data"], tables, str(ROOT)
    )
    write_text(outputs["record"], record)
    write_text(outputs["page"], text_as_html(f"Record of the run: {name}", record))
