"""From checkpoints to figures: each file of `rules/` is a stage, in the order of the includes."""

from snakemake.utils import min_version

from vitscope import package_data

min_version("9.20")


configfile: f"{package_data.ROOT}/config/config.yaml"


pathvars:
    figures="figures",


report: "report/workflow.rst"


container: config.get("container")


include: "rules/common.smk"
include: "rules/internals.smk"
include: "rules/inputs/shared.smk"


wildcard_constraints:
    study=one_of(STUDIES),
    model=ANY_NAME,
    dataset=ANY_NAME,
    split=ANY_NAME,
    buildup=one_of(names_in("buildups")),
    step=r"\d+",
    format=one_of(targets.VIDEO_FORMATS),
    table=one_of(named_by(Study.tables)),
    measure=one_of({*registry.names(), *names_in("own_measures")}),
    snapshot=ANY_NAME,
    part=r"\d+",
    epoch=r"\d+",


include: "rules/inputs/data.smk"
include: "rules/data.smk"
include: "rules/inputs/training.smk"
include: "rules/training.smk"
include: "rules/inputs/checkpoints.smk"
include: "rules/checkpoints.smk"
include: "rules/inputs/latents.smk"
include: "rules/latents.smk"
include: "rules/predictions.smk"
include: "rules/inputs/corruptions.smk"
include: "rules/corruptions.smk"
include: "rules/inputs/measures.smk"
include: "rules/measures.smk"
include: "rules/inputs/tables.smk"
include: "rules/tables.smk"
include: "rules/claims.smk"
include: "rules/inputs/figures.smk"
include: "rules/figures.smk"
include: "rules/inputs/videos.smk"
include: "rules/videos.smk"
include: "rules/inputs/buildups.smk"
include: "rules/buildups.smk"
include: "rules/inputs/provenance.smk"
include: "rules/provenance.smk"


# What was read stays: do not search it for garbage.
gc.freeze()


onstart:
    check_storage()
    weigh_jobs_when_one_ends()


onsuccess:
    remove_unfinished(Path(FOLDERS["results"]))


onerror:
    remove_unfinished(Path(FOLDERS["results"]))
    say_last(*why_jobs_failed(log))


# Define this here: Snakemake takes no default target from an included file.
rule all:
    default_target: True
    input:
        all_files_of(DEFAULT, "<figures>"),
    localrule: True


rule all_of_study:
    """Make all of a study: figures, videos, overview, tables, claims and the record of the run.

    The file `figures/{study}/all` is empty.
    """
    input:
        lambda wildcards: all_files_of(wildcards.study, f"<figures>/{wildcards.study}"),
    output:
        touch("<figures>/{study}/all"),
    localrule: True


rule refuse_study:
    """Report the error of a study that was not read, when a file of it is requested."""
    input:
        lambda wildcards: exit_on_user_error(ALL_STUDIES.refuse_unread, wildcards.unread),
    output:
        "<figures>/{unread}/{file}",
        "<results>/{unread}/{file}",
    wildcard_constraints:
        unread=one_of(set(ALL_STUDIES) - set(STUDIES)),
        file=".+",
    localrule: True
