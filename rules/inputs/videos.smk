"""What rules/videos.smk asks for: inputs, outputs and params by wildcards."""

from vitscope.jobs.videos import source_path


def output_of_model(output):
    """Return a function that finds the output of a rule for the model that a job is about."""

    def path_for_model(wildcards):
        model = model_of(study_of(wildcards), names_of(wildcards))
        return path_of(output, wildcards, model=model)

    return path_for_model


def source_of_video(wildcards):
    """Return the folder or file of the frames, or its download; [] if they are generated."""
    study, name = study_of(wildcards), names_of(wildcards)["video"]
    if "url" in study.videos[name].source:
        return path_of(rules.fetch_video.output.file, wildcards)
    return given_file(study, f"videos.{name}.source.path", source_path(study, name))
