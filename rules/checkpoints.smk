"""Checkpoints and snapshots: downloaded if necessary, verified, converted once.

Converting a checkpoint also lists the blocks of its network: cut points and the costs between them.
"""


use rule fetch_image as fetch_checkpoint with:
    output:
        checkpoint="<results>/{study}/downloads/{model}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        **of_job("fetch_checkpoint"),
    message:
        "Downloading the checkpoint of {wildcards.model}"


use rule fetch_checkpoint as convert_checkpoint with:
    input:
        source=file_to_convert("fetch_checkpoint", "checkpoint"),
    output:
        checkpoint="<results>/{study}/checkpoints/{model}.safetensors",
        blocks="<results>/{study}/blocks/{model}.parquet",
    log:
        "<logs>/{study}/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/{study}/checkpoints/{model}.tsv"
    resources:
        **requests_of("convert_checkpoint"),
        lock=lock_of,
    params:
        **of_job("convert_checkpoint"),
    message:
        "Converting the checkpoint of {wildcards.model}, and listing its cut points"


use rule fetch_checkpoint as fetch_snapshot with:
    output:
        checkpoint="<results>/{study}/downloads/{model}/{snapshot}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}/{snapshot}.log",
    cache: "omit-software"
    localrule: True
    message:
        "Downloading the snapshot {wildcards.snapshot} of {wildcards.model}"


use rule convert_checkpoint as convert_snapshot with:
    input:
        source=file_to_convert("fetch_snapshot", "snapshots.{snapshot}"),
    output:
        checkpoint="<results>/{study}/snapshots/{model}/{snapshot}.safetensors",
    log:
        "<logs>/{study}/snapshots/{model}/{snapshot}.log",
    benchmark:
        "<benchmarks>/{study}/snapshots/{model}/{snapshot}.tsv"
    message:
        "Converting the snapshot {wildcards.snapshot} of {wildcards.model}"
