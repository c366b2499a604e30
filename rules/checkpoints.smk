"""Checkpoints and snapshots: fetched where they are not here, verified, converted once."""


include: "helpers/checkpoints.smk"


rule fetch_checkpoint:
    output:
        checkpoint="<results>/{study}/downloads/{model}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}.log",
    cache: "omit-software"
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        # No more than this: users of one cache share what they download from the same address.
        code=code_of("fetch_checkpoint"),
        checkpoint=of_study(params.download, "model"),
    message:
        "Downloading the checkpoint of {wildcards.model}"
    script:
        "../scripts/fetch_checkpoint.py"


rule convert_checkpoint:
    input:
        source=checkpoint_file,
    output:
        checkpoint="<results>/{study}/checkpoints/{model}.safetensors",
    log:
        "<logs>/{study}/checkpoints/{model}.log",
    benchmark:
        "<benchmarks>/{study}/checkpoints/{model}.tsv"
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        code=code_of("convert_checkpoint"),
        model=of_study(Study.network, "model"),
        checkpoint=lambda wildcards: study_of(wildcards).models[wildcards.model].checkpoint,
        label="{model}",
    message:
        "Converting the checkpoint of {wildcards.model}"
    script:
        "../scripts/convert_checkpoint.py"


use rule fetch_checkpoint as fetch_snapshot with:
    output:
        checkpoint="<results>/{study}/downloads/{model}/{snapshot}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}/{snapshot}.log",
    cache: "omit-software"
    localrule: True
    params:
        checkpoint=of_study(params.snapshot_download, "model", "snapshot"),
    message:
        "Downloading the snapshot {wildcards.snapshot} of {wildcards.model}"


use rule convert_checkpoint as convert_snapshot with:
    input:
        source=snapshot_file,
    output:
        checkpoint="<results>/{study}/snapshots/{model}/{snapshot}.safetensors",
    log:
        "<logs>/{study}/snapshots/{model}/{snapshot}.log",
    benchmark:
        "<benchmarks>/{study}/snapshots/{model}/{snapshot}.tsv"
    localrule: True
    params:
        checkpoint=of_study(Study.snapshot, "model", "snapshot"),
        label="{model}, snapshot {snapshot}",
    message:
        "Converting the snapshot {wildcards.snapshot} of {wildcards.model}"
