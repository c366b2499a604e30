from pathlib import Path

from vitscope.planning import code


def reached(job: str, *modules: str) -> dict[str, Path]:
    """Return every module of vitscope that the work of a job, or one of `modules`, imports."""
    found = dict.fromkeys(module for module, *_ in code._reached_names(job, modules))
    files = {module: code.module_file(module) for module in found}
    return {module: file for module, file in files.items() if file}


def covered(job: str, *modules: str) -> frozenset[tuple[str, str]]:
    """Return the names that the digest of a job covers, each with its module."""
    found = code._covered_definitions(job, modules)
    return frozenset((module, name) for (module, _), each in found.items() for name in each.names)
