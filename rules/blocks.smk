"""Blocks: the ordered cut points of each model, and the costs between them."""


rule list_blocks:
    output:
        blocks="<results>/{study}/blocks/{model}.parquet",
    log:
        "<logs>/{study}/blocks/{model}.log",
    benchmark:
        "<benchmarks>/{study}/blocks/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("list_blocks"),
    params:
        **of_job("list_blocks"),
    message:
        "Listing the cut points of {wildcards.model}"
    script:
        "../scripts/run_job.py"
