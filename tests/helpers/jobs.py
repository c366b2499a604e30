from pathlib import Path
from types import SimpleNamespace
from typing import Any

from vitscope.jobs.job import Resources, Values, find_job
from vitscope.jobs.provenance import RECORD_RUN, record_run_job
from vitscope.settings.study import Study


def values_of(job: str, study: Study, **names: str) -> Values:
    return find_job(job).values(study, names)


def text_of_record(folder: Path, study: Values, **inputs: Any) -> str:
    """Record a run of a study with these settings, and return the text of the record."""
    given = {"checkpoints": [], "data": [], **inputs}
    outputs = {"record": str(folder / "run.yaml"), "page": str(folder / "run.html")}
    values = RECORD_RUN.values(SimpleNamespace(name="tiny", settings=study), {})
    record_run_job(given, outputs, values, Resources())
    return Path(outputs["record"]).read_text(encoding="utf-8")
