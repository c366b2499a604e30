"""Figures: from tables and the style file alone; each in all formats at once.

`figures/{study}/{figure}.pdf` is a figure of that study, `figures/{figure}.pdf` one of the default.
"""


rule draw_feature_variance:
    input:
        models=models_in_figure(rules.merge_variance.output.variance),
        published=published_of_figure,
        style=STYLE,
    output:
        pdf="<figures>/{study}/{figure}.pdf",
        png="<figures>/{study}/{figure}.png",
        svg=report(
            "<figures>/{study}/{figure}.svg",
            caption="../report/feature_variance.rst",
            category="Figures",
            labels={"result": "{figure}", "study": "{study}"},
        ),
    log:
        "<logs>/{study}/figures/{figure}.log",
    benchmark:
        "<benchmarks>/{study}/figures/{figure}.tsv"
    wildcard_constraints:
        figure=one_of(figures_showing("feature_variance")),
    conda:
        "../envs/figures.yaml"
    params:
        code=code("draw_figure", module_of("feature_variance")),
        kind="feature_variance",
        members=members_of,
        published=lambda wildcards: figure_of(wildcards).get("published"),
        facts=facts_of,
    message:
        "Drawing {wildcards.figure}"
    script:
        "../scripts/draw_figure.py"


use rule draw_feature_variance as draw_default_feature_variance with:
    output:
        pdf="<figures>/{figure}.pdf",
        png="<figures>/{figure}.png",
        svg=report(
            "<figures>/{figure}.svg",
            caption="../report/feature_variance.rst",
            category="Figures",
            labels={"result": "{figure}", "study": DEFAULT},
        ),
    log:
        f"<logs>/{DEFAULT}/figures/default_{{figure}}.log",
    benchmark:
        f"<benchmarks>/{DEFAULT}/figures/default_{{figure}}.tsv"
    wildcard_constraints:
        figure=one_of(figures_showing("feature_variance", DEFAULT)),
