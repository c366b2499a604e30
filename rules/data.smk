"""Data: download official archives and images, and make one file per split."""

from vitscope.data.opening import archive_needed, local_files, local_path_exists


rule fetch_archive:
    """Download the official archive of a data set, whose digest vitscope knows."""
    output:
        archive="<results>/{study}/downloads/{dataset}.archive",
    log:
        "<logs>/{study}/downloads/{dataset}.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("fetch_archive"),
    message:
        "Downloading the data set {wildcards.dataset}"
    script:
        "../scripts/fetch_archive.py"


rule fetch_image:
    """Download an image by its address; its digest goes to the lock file of the study."""
    output:
        file="<results>/{study}/downloads/{dataset}.image",
    log:
        "<logs>/{study}/downloads/{dataset}.image.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/base.yaml"
    resources:
        lock_file=lock_file_of,
    params:
        **values_and_code_of("fetch_file"),
    message:
        "Downloading the image of {wildcards.dataset}"
    script:
        "../scripts/fetch_file.py"


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


rule build_split:
    """Write the images of a split, resized and in order, with their labels."""
    input:
        source=source_files,
    output:
        images="<results>/{study}/data/{dataset}/{split}.safetensors",
    log:
        "<logs>/{study}/data/{dataset}/{split}.log",
    benchmark:
        "<benchmarks>/{study}/data/{dataset}/{split}.tsv"
    conda:
        "../envs/base.yaml"
    resources:
        **requests_of("build_split"),
        lock_file=lock_file_of,
    params:
        **values_and_code_of("build_split"),
    message:
        "Preparing the images of {wildcards.dataset}, split {wildcards.split}"
    script:
        "../scripts/build_split.py"
