"""Write a table as CSV."""

from vitscope.jobs.job import Files, Job, Resources, Values

JOB = Job()


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.files.tables import read_frame, write_csv
    from vitscope.measures.columns import without_resamples

    write_csv(without_resamples(read_frame(inputs["table"])), outputs["csv"])
