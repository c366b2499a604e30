"""Checkpoints: fetched where they are not on this machine, verified, converted once."""


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
        code=code("fetch_checkpoint"),
        checkpoint=lambda wildcards: model_of(wildcards)["checkpoint"],
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
        code=family_code("convert_checkpoint"),
        model=network_of,
        checkpoint=lambda wildcards: model_of(wildcards)["checkpoint"],
        label="{model}",
    message:
        "Converting the checkpoint of {wildcards.model}"
    script:
        "../scripts/convert_checkpoint.py"
