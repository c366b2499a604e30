"""What rules/checkpoints.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.jobs.networks import checkpoint_entry


def file_to_convert(fetched, key):
    """Return a function that finds the file of a checkpoint; [] if a function makes its weights."""

    def path_to_convert(wildcards):
        names = names_of(wildcards)
        entry = exit_on_user_error(checkpoint_entry, study_of(wildcards), names)
        if "made" in entry:
            return []
        return named_file(wildcards, key.format(**names), entry, path_of(fetched, wildcards))

    return path_to_convert
