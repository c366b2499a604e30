from snakemake.utils import min_version

min_version("9.20")


configfile: f"{workflow.basedir}/config/config.yaml"


pathvars:
    figures="figures",


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/inputs.smk"
include: "rules/internals.smk"


wildcard_constraints:
    study=one_of(STUDIES),
    model=one_of(names_in("models")),
    dataset=one_of(names_in("data")),
    split=one_of(split_names()),
    buildup=one_of(names_in("buildups")),
    weights=one_of(("bundled", "trained")),
    step=r"\d+",
    format=one_of(targets.VIDEO_FORMATS),
    table=one_of(tables_in()),
    measure=one_of({*registry.names(), *names_in("own_measures")}),
    snapshot=one_of(snapshot_names()),
    part=r"\d+",
    epoch=r"\d+",


include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/checkpoints.smk"
include: "rules/blocks.smk"
include: "rules/latents.smk"
include: "rules/predictions.smk"
include: "rules/corruptions.smk"
include: "rules/measures.smk"
include: "rules/tables.smk"
include: "rules/claims.smk"
include: "rules/figures.smk"
include: "rules/videos.smk"
include: "rules/buildups.smk"
include: "rules/provenance.smk"


onstart:
    start_alone()
    check_places()


onsuccess:
    remove_unfinished(Path(FOLDERS["results"]))


onerror:
    remove_unfinished(Path(FOLDERS["results"]))
    report_failures_at_exit()


# Here, since Snakemake takes no default target from a file that is included.
rule all:
    default_target: True
    input:
        collect(
            "<figures>/{figure}.{format}",
            figure=figures_of(DEFAULT),
            format=targets.FORMATS,
        ),
        collect("<figures>/{video}.webp", video=sorted(STUDIES[DEFAULT].videos)),
        tables_and_record(DEFAULT),
    localrule: True


rule all_of_study:
    """`figures/{study}/all`: every figure and table of a study; the file that it touches is empty."""
    input:
        figures_of_study,
        videos_of_study,
        lambda wildcards: tables_and_record(wildcards.study),
    output:
        touch("<figures>/{study}/all"),
    localrule: True


refuse_wrong_targets()
