"""What the jobs of data.smk are given, and where their inputs lie."""

from vitscope.data.source_files import archive_needed, existing, local_files


def source_files(wildcards):
    """The files that the artefact of a split is made from."""
    study = study_of(wildcards)
    source = study.data[wildcards.dataset].source
    if archive_needed(source):
        return collect(rules.fetch_archive.output, study=study.name, dataset=wildcards.dataset)
    where = f"{study.path}: data.{wildcards.dataset}.source"
    return clear(local_files, where, source, wildcards.split)
