"""Trajectory: where the weights of a model were on their way, seen from where they ended."""


rule trace_trajectory:
    input:
        unpack(moments_of),
    output:
        trajectory="<results>/{study}/trajectory/{model}.parquet",
    log:
        "<logs>/{study}/trajectory/{model}.log",
    benchmark:
        "<benchmarks>/{study}/trajectory/{model}.tsv"
    localrule: True
    conda:
        "../envs/torch.yaml"
    params:
        code=trajectory_code,
        moments=trajectory_of,
    message:
        "Tracing the trajectory of {wildcards.model}"
    script:
        "../scripts/trace_trajectory.py"
