"""Noise of one frequency, and what it costs in accuracy."""


rule measure_frequency_noise:
    input:
        checkpoint=rules.convert_checkpoint.output.checkpoint,
        images=split_for(None),
    output:
        noise="<results>/{study}/frequency_noise/{model}.parquet",
    log:
        "<logs>/{study}/frequency_noise/{model}.log",
    benchmark:
        "<benchmarks>/{study}/frequency_noise/{model}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_passes,
        runtime=minutes_of(passes_of_noise),
        gpu=gpu_of,
    params:
        code=family_code("measure_frequency_noise"),
        model=network_of,
        noise=probing("frequency_noise"),
        bootstrap=lambda wildcards: study_of(wildcards).settings["analysis"]["bootstrap"],
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Measuring {wildcards.model} under noise of one frequency"
    script:
        "../scripts/measure_frequency_noise.py"
