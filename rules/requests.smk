"""What a job asks of a cluster: memory, time and a GPU; vitscope/workflow/costs.py says how much.

Each request doubles at every further attempt, but for the memory of a training, which doubles once:
where time is short it has many attempts. On one machine they limit nothing, unless `--resources
mem_mb=...` says what all jobs together may take. Every job runs on one thread, so that its results
are the same bytes everywhere: shards and parts are what fills more cores.
"""

from vitscope.workflow import costs


def job_of(rule, wildcards, input):
    """A job, with what its inputs tell of how much there is to do."""
    job = costs.Job(rule, study_of(wildcards), dict(wildcards.items()))
    return clear(costs.informed, job, dict(input.items()))


def megabytes_of(rule, most=float("inf")):
    """The memory of a job of a rule, at most so many times what it asks for at first."""

    def megabytes(wildcards, input, attempt):
        job = job_of(rule, wildcards, input)
        return costs.megabytes(job) * min(2 ** (attempt - 1), most)

    return megabytes


def minutes_of(rule):
    """The time of a job of a rule."""

    def minutes(wildcards, input, attempt):
        job = job_of(rule, wildcards, input)
        return costs.minutes(job) * 2 ** (attempt - 1)

    return minutes


def gpu_of(wildcards):
    """One GPU where the study demands it; `device: auto` takes what there is and asks for none."""
    return int(study_of(wildcards).device == "cuda")
