"""Predictions: what a model says of the images of a split that are classified."""


rule predict:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=ancient("<results>/{study}/blocks/{model}.parquet"),
        images=lambda wildcards: split_for(wildcards.split)(wildcards),
    output:
        predictions="<results>/{study}/predictions/{model}/{split}.parquet",
    log:
        "<logs>/{study}/predictions/{model}/{split}.log",
    benchmark:
        "<benchmarks>/{study}/predictions/{model}/{split}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=megabytes_of("predict"),
        runtime=minutes_of("predict"),
        gpu=gpu_of,
    params:
        code=code_of("predict"),
        model=of_study(Study.network, "model"),
        selection=of_study(params.classified, "split"),
        labels_are_truth=of_study(params.labels_are_truth, "split"),
        batch_size=lambda wildcards: study_of(wildcards).analysis.batch_size,
        device=device_of,
    message:
        "Classifying the images of the split {wildcards.split} by {wildcards.model}"
    script:
        "../scripts/predict.py"
