"""What rules/data.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.data.opening import archive_needed, local_files, local_path_exists


def source_files(wildcards):
    study = study_of(wildcards)
    source = study.data[wildcards.dataset].source
    if archive_needed(source):
        return [path_of(rules.fetch_archive.output.archive, wildcards)]
    if source["kind"] == "url":
        return [path_of(rules.fetch_image.output.file, wildcards)]
    if PLAN and not local_path_exists(source, wildcards.split):
        # A plan may be made before the images exist, and then says so.
        return []
    where = f"{study.path}: data.{wildcards.dataset}.source"
    there = exit_on_user_error(local_files, where, source, wildcards.split, study.path)
    return [local(file) for file in there]
