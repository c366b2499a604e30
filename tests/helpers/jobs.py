from vitscope.jobs.job import Values, find_job
from vitscope.settings.study import Study


def values_of(job: str, study: Study, **names: str) -> Values:
    return find_job(job).values(study, names)
