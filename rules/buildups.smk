"""Build-ups: a CNN whose blocks become MSAs, one by one, as long as that improves it.

Which network a step tries follows from what the steps before it gave, so that these jobs are known
only as the build-up goes on. `figures/{study}/{buildup}.pdf` is how accurate they are.
"""


include: "helpers/buildups.smk"


checkpoint decide_step:
    """What a step tries: a network, or none where the build-up has come to its end."""
    input:
        results=results_before,
    output:
        tried="<results>/{study}/buildups/{buildup}/{weights}/step_{step}/tried.json",
    log:
        "<logs>/{study}/buildups/{buildup}/{weights}/step_{step}/decide.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("decide_step"),
        settings=of_study(params.buildup, "buildup"),
    message:
        "Deciding what step {wildcards.step} of {wildcards.buildup} tries"
    script:
        "../scripts/decide_step.py"


rule train_step:
    """Weights of what a step tries; as any training, it goes on where it was broken off."""
    input:
        tried="<results>/{study}/buildups/{buildup}/trained/step_{step}/tried.json",
        train=split_of_baseline("train"),
        test=split_of_baseline("test"),
    output:
        init="<results>/{study}/buildups/{buildup}/trained/step_{step}/init.safetensors",
        warmup="<results>/{study}/buildups/{buildup}/trained/step_{step}/warmup.safetensors",
        end="<results>/{study}/buildups/{buildup}/trained/step_{step}/end.safetensors",
        epochs=directory("<results>/{study}/buildups/{buildup}/trained/step_{step}/epochs"),
        history="<results>/{study}/buildups/{buildup}/trained/step_{step}/history.parquet",
    log:
        "<logs>/{study}/buildups/{buildup}/trained/step_{step}/train.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}/trained/step_{step}.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=megabytes_of("train_step", most=2),
        runtime=minutes_of("train_step"),
        gpu=gpu_of,
    params:
        code=code_of("train_step"),
        recipe=of_study(params.recipe_of_steps, "buildup"),
        device=device_of,
    message:
        "Training what step {wildcards.step} of {wildcards.buildup} tries"
    script:
        "../scripts/train_step.py"


rule measure_step:
    input:
        tried=rules.decide_step.output.tried,
        weights=weights_of_step,
        images=split_of_baseline("test"),
    output:
        result="<results>/{study}/buildups/{buildup}/{weights}/step_{step}/result.parquet",
    log:
        "<logs>/{study}/buildups/{buildup}/{weights}/step_{step}/measure.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}/{weights}/step_{step}/result.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        mem_mb=megabytes_of("measure_step"),
        runtime=minutes_of("measure_step"),
        gpu=gpu_of,
    params:
        code=code_of("measure_step"),
        missing=missing_weights,
        batch_size=lambda wildcards: study_of(wildcards).analysis.batch_size,
        device=device_of,
    message:
        "Measuring what step {wildcards.step} of {wildcards.buildup} tries"
    script:
        "../scripts/measure_step.py"


rule tabulate_buildup:
    """One row per step, with what was decided; and the best network as a model of a study."""
    input:
        results=results_of_steps,
    output:
        table="<results>/{study}/tables/buildup_{buildup}.parquet",
        model="<results>/{study}/buildups/{buildup}/model.yaml",
    log:
        "<logs>/{study}/tables/buildup_{buildup}.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("tabulate_buildup"),
        settings=of_study(params.buildup, "buildup"),
        data=lambda wildcards: baseline_of(wildcards).data,
        weights=weights_for_studies,
    message:
        "Writing the table of the build-up {wildcards.buildup}"
    script:
        "../scripts/tabulate_buildup.py"


rule draw_buildup:
    input:
        table=rules.tabulate_buildup.output.table,
        published=published_of_buildup,
        style=STYLE,
    output:
        pdf="<figures>/{study}/{buildup}.pdf",
        png="<figures>/{study}/{buildup}.png",
        svg=report(
            "<figures>/{study}/{buildup}.svg",
            caption="../report/buildup.rst",
            category="Figures",
            labels={"result": "{buildup}", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/buildups/{buildup}.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}.tsv"
    wildcard_constraints:
        buildup=named_in_study("buildups"),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        code=code_of("draw_buildup"),
        facts=of_study(params.buildup_facts, "buildup"),
        label=lambda wildcards: baseline_of(wildcards).label,
    message:
        "Drawing {wildcards.buildup}"
    script:
        "../scripts/draw_buildup.py"


use rule draw_buildup as draw_default_buildup with:
    input:
        table=f"<results>/{DEFAULT}/tables/buildup_{{buildup}}.parquet",
        published=published_of_buildup,
        style=STYLE,
    output:
        pdf="<figures>/{buildup}.pdf",
        png="<figures>/{buildup}.png",
        svg=report(
            "<figures>/{buildup}.svg",
            caption="../report/buildup.rst",
            category="Figures",
            labels={"result": "{buildup}", "study": DEFAULT},
        ),
    log:
        f"<logs>/{DEFAULT}/buildups/default_{{buildup}}.log",
    benchmark:
        f"<benchmarks>/{DEFAULT}/buildups/default_{{buildup}}.tsv"
    wildcard_constraints:
        buildup=one_of(STUDIES[DEFAULT].buildups),
    localrule: True


rule train_mini_buildup:
    """Train every network of the bundled build-up again and put the weights in their place."""
    input:
        trained_steps("mini", "fig12a"),
    output:
        touch("<results>/mini/buildups/fig12a/bundled_again"),
    log:
        "<logs>/mini/buildups/bundled.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        code=code_of("train_mini_buildup"),
        folder=str(ROOT / "resources" / "checkpoints" / "mini"),
        names=lambda wildcards, input: [bundled_name(path) for path in input],
    message:
        "Writing resources/checkpoints/mini/buildup"
    script:
        "../scripts/bundle_weights.py"
