"""Data: fetch what is official and on the web, and cache one artefact per split."""


include: "helpers/data.smk"


rule fetch_archive:
    output:
        archive="<results>/{study}/downloads/{dataset}.archive",
    log:
        "<logs>/{study}/downloads/{dataset}.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("fetch_archive"),
        archive=of_study(params.archive, "dataset"),
        source=lambda wildcards: study_of(wildcards).data[wildcards.dataset].source,
    message:
        "Downloading the data set {wildcards.dataset}"
    script:
        "../scripts/fetch_archive.py"


rule build_split:
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
        mem_mb=megabytes_of("build_split"),
        runtime=minutes_of("build_split"),
    params:
        code=code_of("build_split"),
        dataset=of_study(params.split, "dataset", "split"),
        listing=of_study(params.listing, "dataset", "split"),
    message:
        "Preparing the images of {wildcards.dataset}, split {wildcards.split}"
    script:
        "../scripts/build_split.py"
