"""Predictions of a model for the images of a split."""


rule predict:
    """Classify the images of a split that measures need; write a row for each."""
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
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("predict"),
        gpu=gpu_of,
    params:
        **values_and_code_of("predict"),
    message:
        "Classifying the images of the split {wildcards.split} by {wildcards.model}"
    script:
        "../scripts/predict.py"
