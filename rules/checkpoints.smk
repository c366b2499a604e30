"""Checkpoints: fetched where they are not on this machine, verified, converted once."""


rule fetch_checkpoint:
    output:
        checkpoint="<results>/{study}/downloads/{model}.checkpoint",
    log:
        "<logs>/{study}/downloads/{model}.log",
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        code=code("fetch_checkpoint"),
        checkpoint=lambda wildcards: model_of(wildcards)["checkpoint"],
        label="{model}",
        lock=lambda wildcards: str(study_of(wildcards).lock_path),
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
