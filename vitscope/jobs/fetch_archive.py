"""Download the official archive of a data set."""

from pathlib import Path

from vitscope.data.opening import declared
from vitscope.jobs.job import Files, Job, Names, Resources, Study, Values


def _values(study: Study, names: Names) -> Values:
    # No more than this: users of one cache share what they download from the same address.
    source = study.data[names["dataset"]].source
    return {"archive": declared(source["kind"]).archive, "source": source}


JOB = Job(values=_values)


def run(inputs: Files, outputs: Files, values: Values, resources: Resources) -> None:
    from vitscope.data.archives import download

    archive = Path(outputs["archive"])
    download(values["archive"], values["source"], archive, label=resources.label, say=resources.say)
