"""Blocks: the ordered cut points of each model, and what lies between them."""


rule list_blocks:
    output:
        blocks="<results>/{study}/blocks/{model}.parquet",
    log:
        "<logs>/{study}/blocks/{model}.log",
    benchmark:
        "<benchmarks>/{study}/blocks/{model}.tsv"
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        code=code_of("list_blocks"),
        model=of_study(Study.network, "model"),
        points=lambda wildcards: study_of(wildcards).models[wildcards.model].points,
    message:
        "Listing the cut points of {wildcards.model}"
    script:
        "../scripts/list_blocks.py"
