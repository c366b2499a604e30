"""Hessian: the spectrum of the training loss, batch by batch, then merged."""


rule measure_hessian:
    input:
        weights=weights_of,
        images=rules.augment_images.output.images,
    output:
        hessian="<results>/{study}/hessian/{model}/{snapshot}/{part}.parquet",
    log:
        "<logs>/{study}/hessian/{model}/{snapshot}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/hessian/{model}/{snapshot}/{part}.tsv"
    wildcard_constraints:
        part=r"\d+",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_hessian(vectors_of_largest),
        runtime=minutes_of(passes_of_largest),
        gpu=gpu_of,
    params:
        code=family_code("measure_hessian"),
        model=network_of,
        loss=loss_of,
        batches=batches_of_part,
        analysis=hessian_of(top="top", tolerance="tolerance", iterations="iterations"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Measuring the Hessian of {wildcards.model} at {wildcards.snapshot}, part {wildcards.part}"
    script:
        "../scripts/measure_hessian.py"


rule merge_hessian:
    input:
        parts=parts_of_hessian("hessian", rules.measure_hessian.output.hessian),
    output:
        hessian="<results>/{study}/hessian/{model}.parquet",
    log:
        "<logs>/{study}/hessian/{model}.log",
    benchmark:
        "<benchmarks>/{study}/hessian/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_hessian"),
    message:
        "Merging the Hessian of {wildcards.model}"
    script:
        "../scripts/merge_hessian.py"


rule measure_hessian_density:
    input:
        weights=weights_of,
        images=rules.augment_images.output.images,
    output:
        density="<results>/{study}/hessian_density/{model}/{snapshot}/{part}.parquet",
    log:
        "<logs>/{study}/hessian_density/{model}/{snapshot}/{part}.log",
    benchmark:
        "<benchmarks>/{study}/hessian_density/{model}/{snapshot}/{part}.tsv"
    wildcard_constraints:
        part=r"\d+",
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=memory_of_hessian(vectors_of_density),
        runtime=minutes_of(passes_of_density),
        gpu=gpu_of,
    params:
        code=family_code("measure_hessian_density"),
        model=network_of,
        loss=loss_of,
        batches=batches_of_part,
        analysis=hessian_of(probes="density_probes", steps="density_steps"),
        device=lambda wildcards: study_of(wildcards).settings["device"],
    message:
        "Measuring the spectral density of {wildcards.model} at {wildcards.snapshot}, "
        "part {wildcards.part}"
    script:
        "../scripts/measure_hessian_density.py"


rule merge_hessian_density:
    input:
        parts=parts_of_hessian("hessian_density", rules.measure_hessian_density.output.density),
    output:
        density="<results>/{study}/hessian_density/{model}.parquet",
    log:
        "<logs>/{study}/hessian_density/{model}.log",
    benchmark:
        "<benchmarks>/{study}/hessian_density/{model}.tsv"
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code("merge_hessian_density"),
    message:
        "Merging the spectral density of {wildcards.model}"
    script:
        "../scripts/merge_hessian_density.py"
