"""Build-ups: a CNN whose blocks become MSAs, one by one, as long as that improves it.

Which network a step tries depends on the results of the steps before, so these jobs become known
only during the build-up. `figures/{study}/{buildup}.pdf` shows the accuracy of the networks.
"""


checkpoint decide_step:
    """Decide which network a step tries, or that the build-up has ended."""
    input:
        results=results_of_earlier_steps,
    output:
        tried="<results>/{study}/buildups/{buildup}/trained/step_{step}/tried.json",
    log:
        "<logs>/{study}/buildups/{buildup}/trained/step_{step}/decide.log",
    localrule: True
    conda:
        "../envs/base.yaml"
    params:
        **values_and_code_of("decide_step"),
    message:
        "Deciding what step {wildcards.step} of {wildcards.buildup} tries"
    script:
        "../scripts/decide_step.py"


use rule train_model as train_step with:
    """Train the network of a step; like any training, it resumes where it was stopped."""
    input:
        tried="<results>/{study}/buildups/{buildup}/trained/step_{step}/tried.json",
        train=split_for("train"),
        test=split_for("test"),
    output:
        init="<results>/{study}/buildups/{buildup}/trained/step_{step}/init.safetensors",
        warmup="<results>/{study}/buildups/{buildup}/trained/step_{step}/warmup.safetensors",
        end="<results>/{study}/buildups/{buildup}/trained/step_{step}/end.safetensors",
        epochs=directory("<results>/{study}/buildups/{buildup}/trained/step_{step}/epochs"),
        history="<results>/{study}/buildups/{buildup}/trained/step_{step}/history.parquet",
    log:
        "<logs>/{study}/buildups/{buildup}/trained/step_{step}/train.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}/trained/step_{step}/init.tsv"
    message:
        "Training what step {wildcards.step} of {wildcards.buildup} tries"


rule measure_step:
    """Classify the test images by the network of a step; write its accuracy."""
    input:
        tried=rules.decide_step.output.tried,
        weights=rules.train_step.output.end,
        images=split_for("test"),
    output:
        result="<results>/{study}/buildups/{buildup}/trained/step_{step}/result.parquet",
    log:
        "<logs>/{study}/buildups/{buildup}/trained/step_{step}/measure.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}/trained/step_{step}/result.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("measure_step"),
        gpu=gpu_of,
    params:
        **values_and_code_of("measure_step"),
    message:
        "Measuring what step {wildcards.step} of {wildcards.buildup} tries"
    script:
        "../scripts/measure_step.py"


rule measure_bundled:
    """Measure networks with bundled weights, step by step, until the build-up ends."""
    input:
        weights=weights_of_steps,
        images=split_for("test"),
    output:
        result="<results>/{study}/buildups/{buildup}/bundled.parquet",
    log:
        "<logs>/{study}/buildups/{buildup}/bundled.log",
    benchmark:
        "<benchmarks>/{study}/buildups/{buildup}/bundled.tsv"
    conda:
        "../envs/torch.yaml"
    resources:
        **requests_of("measure_bundled"),
        gpu=gpu_of,
    params:
        **values_and_code_of("measure_bundled"),
    message:
        "Measuring the networks of {wildcards.buildup}"
    script:
        "../scripts/measure_bundled.py"


rule tabulate_buildup:
    """Write one row per step with its decision, and the best network as a model of a study."""
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
        **values_and_code_of("tabulate_buildup"),
        weights=weights_for_studies,
    message:
        "Writing the table of the build-up {wildcards.buildup}"
    script:
        "../scripts/tabulate_buildup.py"


rule draw_buildup:
    """Draw the accuracy of the networks of a build-up, step by step."""
    input:
        table=lambda wildcards: path_of(rules.tabulate_buildup.output.table, wildcards),
        published=published_points,
        style=STYLE,
    output:
        pdf="<figures>/{buildup}.pdf",
        png="<figures>/{buildup}.png",
        svg=in_report("<figures>/{buildup}.svg", "buildup", "How networks are built"),
    log:
        "<logs>/figures/{buildup}.log",
    benchmark:
        "<benchmarks>/figures/{buildup}.tsv"
    wildcard_constraints:
        buildup=shown_in("buildups"),
    localrule: True
    conda:
        "../envs/figures.yaml"
    params:
        **values_and_code_of("draw_buildup"),
    message:
        "Drawing {wildcards.buildup}"
    script:
        "../scripts/draw_buildup.py"


use rule draw_buildup as animate_buildup with:
    """Draw the figure of a build-up step by step, as a video, on demand."""
    output:
        video="<figures>/{buildup}.{format}",
    log:
        "<logs>/figures/{buildup}.{format}.log",
    benchmark:
        "<benchmarks>/figures/{buildup}.{format}.tsv"
    wildcard_constraints:
        buildup=shown_in("buildups"),
    localrule: True
    message:
        "Drawing {wildcards.buildup} step by step"


use rule export_table as export_buildup with:
    """Write the table of a build-up as CSV, on demand: it has the points of the figure."""
    input:
        table=lambda wildcards: path_of(rules.tabulate_buildup.output.table, wildcards),
    output:
        csv="<figures>/{buildup}.csv",
    log:
        "<logs>/figures/{buildup}_csv.log",
    wildcard_constraints:
        buildup=shown_in("buildups"),
    localrule: True
    message:
        "Writing the points of {wildcards.buildup}"


use rule train_mini as train_mini_buildup with:
    """Train every network of the bundled build-up again, and replace the weights."""
    input:
        trained=weights_of_trained_steps,
    output:
        done="<results>/mini/buildups/fig12a/bundled_again",
    log:
        "<logs>/mini/buildups/bundled.log",
    localrule: True
    message:
        "Writing resources/checkpoints/mini/buildup"
