"""What rules/tables.smk asks for: inputs, outputs and params by wildcards."""


def subjects_in_table(wildcards):
    """Return the tables of models or pairs that are joined to one table of a study."""
    study = study_of(wildcards)
    subjects = study.subjects_of(wildcards.table)
    return collect(OF_SUBJECT, study=study.name, table=wildcards.table, model=subjects)
