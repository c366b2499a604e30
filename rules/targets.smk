"""Targets that are no files: `all`, all of the default study, and `figures/{study}/all` of each."""


include: "helpers/targets.smk"


rule all:
    default_target: True
    input:
        collect(
            "<figures>/{figure}.{format}",
            figure=sorted(STUDIES[DEFAULT].figures),
            format=targets.FORMATS,
        ),
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
                figure=sorted(STUDIES[study_name].figures),
                format=targets.FORMATS,
            ),
            tables_and_record(study_name),
        localrule: True
