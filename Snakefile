from snakemake.utils import min_version

min_version("9.20")


configfile: f"{workflow.basedir}/config/config.yaml"


pathvars:
    figures="figures",


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/requests.smk"


wildcard_constraints:
    study=one_of(STUDIES),
    model=one_of(names_in("models")),
    dataset=one_of(names_in("data")),
    split=one_of(split_names()),
    figure=named_in_study("figures"),
    video=one_of(names_in("videos")),
    buildup=one_of(names_in("buildups")),
    weights=one_of(("bundled", "trained")),
    step=r"\d+",
    format=one_of(targets.VIDEO_FORMATS),
    table=one_of(tables_in()),
    measure=one_of(registry.names()),
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
include: "rules/helpers/targets.smk"


onstart:
    start_alone()
    check_places()


onsuccess:
    trainings.remove_unfinished(Path(FOLDERS["results"]))


onerror:
    trainings.remove_unfinished(Path(FOLDERS["results"]))
    tell_failures_last()


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


for study_name in STUDIES:

    rule:
        name:
            f"{FOLDERS['figures']}/{study_name}/{targets.ALL}"
        input:
            collect(
                "<figures>/{study}/{figure}.{format}",
                study=study_name,
                figure=figures_of(study_name),
                format=targets.FORMATS,
            ),
            collect(
                "<figures>/{study}/{video}.webp",
                study=study_name,
                video=sorted(STUDIES[study_name].videos),
            ),
            tables_and_record(study_name),
        localrule: True


refuse_wrong_targets()
