"""Predictions of a model for the images of a split."""


use rule extract_latents as predict with:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        blocks=rules.convert_checkpoint.output.blocks,
        images=lambda wildcards: split_for(wildcards.split)(wildcards),
    output:
        predictions="<results>/{study}/predictions/{model}/{split}.parquet",
    log:
        "<logs>/{study}/predictions/{model}/{split}.log",
    benchmark:
        "<benchmarks>/{study}/predictions/{model}/{split}.tsv"
    resources:
        **requests_of("predict"),
        gpu=gpu_of,
    params:
        **of_job("predict"),
    message:
        "Classifying the images of the split {wildcards.split} by {wildcards.model}"
