"""Data: fetch what is official and on the web, and cache one artefact per split."""


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
        code=code("fetch_archive"),
        source=lambda wildcards: dataset_of(wildcards)["source"],
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
        mem_mb=memory_of_arrays,
        runtime=minutes_of_building,
    params:
        code=code("build_split"),
        dataset=split_settings,
        listing=listing_of,
    message:
        "Preparing the images of {wildcards.dataset}, split {wildcards.split}"
    script:
        "../scripts/build_split.py"
