"""Data: download official archives and images, and make one file per split."""


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
        **of_job("fetch_archive"),
    message:
        "Downloading the data set {wildcards.dataset}"
    script:
        "../scripts/run_job.py"


use rule fetch_archive as fetch_image with:
    output:
        file="<results>/{study}/downloads/{dataset}.image",
    log:
        "<logs>/{study}/downloads/{dataset}.image.log",
    cache: "omit-software"
    localrule: True
    resources:
        lock=lock_of,
    params:
        **of_job("fetch_file"),
    message:
        "Downloading the image of {wildcards.dataset}"


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
        **requests_of("build_split"),
        lock=lock_of,
    params:
        **of_job("build_split"),
    message:
        "Preparing the images of {wildcards.dataset}, split {wildcards.split}"
    script:
        "../scripts/run_job.py"
