"""Data: download official archives and images, and make one file per split."""


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
