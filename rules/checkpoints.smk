"""Checkpoints and snapshots: downloaded if necessary, verified, converted once.

Converting a checkpoint also lists the blocks of its network: cut points and the costs between them.
"""


rule fetch_checkpoint:
    """Download a checkpoint by its address; its digest goes to the lock file of the study."""
    output:
        checkpoint="<results>/{study}/downloads/{model}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/torch.yaml"
    resources:
        lock_file=lock_file_of,
    params:
        **values_and_code_of("fetch_checkpoint"),
    message:
        "Downloading the checkpoint of {wildcards.model}"
    script:
        "../scripts/fetch_checkpoint.py"


use rule fetch_checkpoint as fetch_snapshot with:
    output:
        checkpoint="<results>/{study}/downloads/{model}/{snapshot}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}/{snapshot}.log",
    cache: "omit-software"
    localrule: True
    message:
        "Downloading the snapshot {wildcards.snapshot} of {wildcards.model}"


rule convert_checkpoint:
    """Convert a checkpoint to safetensors, and list the blocks of its network, without its weights.

    The source is downloaded, on this machine or trained here; a network that brings its weights has
    none. A download is checked by the lock file.
    """
    input:
        source=file_to_convert(rules.fetch_checkpoint.output.checkpoint, "checkpoint"),
    output:
        checkpoint="<results>/{study}/checkpoints/{model}.safetensors",
        blocks="<results>/{study}/blocks/{model}.parquet",
    log:
        "<logs>/{study}/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/{study}/checkpoints/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("convert_checkpoint"),
        lock_file=lock_file_of,
    params:
        **values_and_code_of("convert_checkpoint"),
    message:
        "Converting the checkpoint of {wildcards.model}, and listing its cut points"
    script:
        "../scripts/convert_checkpoint.py"


use rule convert_checkpoint as convert_snapshot with:
    """Convert the checkpoint of a snapshot to safetensors; its blocks are those of the model."""
    input:
        source=file_to_convert(rules.fetch_snapshot.output.checkpoint, "snapshots.{snapshot}"),
    output:
        checkpoint="<results>/{study}/snapshots/{model}/{snapshot}.safetensors",
    log:
        "<logs>/{study}/snapshots/{model}/{snapshot}.log",
    benchmark:
        "<benchmarks>/{study}/snapshots/{model}/{snapshot}.tsv"
    message:
        "Converting the snapshot {wildcards.snapshot} of {wildcards.model}"
