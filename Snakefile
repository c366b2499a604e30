from snakemake.utils import min_version

min_version("9.20")


configfile: f"{workflow.basedir}/config/config.yaml"


pathvars:
    figures="figures",


report: "report/workflow.rst"


include: "rules/common.smk"
include: "rules/resources.smk"


wildcard_constraints:
    study=one_of(STUDIES),
    model=one_of(names_in("models")),
    dataset=one_of(names_in("data")),
    split=one_of(split_names()),
    figure=one_of(names_in("figures")),
    table=one_of(tables_in()),
    snapshot=one_of(snapshot_names()),
    shard=r"\d+",


include: "rules/data.smk"
include: "rules/training.smk"
include: "rules/checkpoints.smk"
include: "rules/snapshots.smk"
include: "rules/trajectory.smk"
include: "rules/blocks.smk"
include: "rules/latents.smk"
include: "rules/variance.smk"
include: "rules/fourier.smk"
include: "rules/cka.smk"
include: "rules/classification.smk"
include: "rules/noise.smk"
include: "rules/lesion.smk"
include: "rules/robustness.smk"
include: "rules/augmented.smk"
include: "rules/fit.smk"
include: "rules/landscape.smk"
include: "rules/hessian.smk"
include: "rules/tables.smk"
include: "rules/claims.smk"
include: "rules/figures.smk"
include: "rules/provenance.smk"


onstart:
    start_alone()
    check_places()


rule all:
    default_target: True
    input:
        collect(
            "<figures>/{figure}.{format}",
            figure=sorted(STUDIES[DEFAULT].settings["figures"]),
            format=FORMATS,
        ),
        collect("<results>/{study}/tables/{table}.parquet", study=DEFAULT, table=tables_in(DEFAULT)),
        f"<results>/{DEFAULT}/tables/claims.parquet",
        f"<results>/{DEFAULT}/run.yaml",
    localrule: True
