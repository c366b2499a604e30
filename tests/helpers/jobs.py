"""What jobs of a study depend on."""

from vitscope.jobs.job import Values, find_job
from vitscope.settings.study import Study


def values_of(job: str, study: Study, **names: str) -> Values:
    """Return the values of a job."""
    return find_job(job).values(study, names)
