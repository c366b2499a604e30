"""What the jobs of videos.smk are given, and where their inputs lie."""

from vitscope.data.source_files import existing


def made_of_video(output):
    """A file that is made of the model of a video."""

    def path(wildcards):
        study = study_of(wildcards)
        return output.format(study=study.name, model=study.videos[wildcards.video].model)

    return path


checkpoint_of_video = made_of_video(rules.convert_checkpoint.output.checkpoint)
blocks_of_video = made_of_video(rules.list_blocks.output.blocks)


def source_of_video(wildcards):
    """The folder or file of the frames, if these are not generated."""
    study = study_of(wildcards)
    path = params.video_path(study, wildcards.video)
    where = f"{study.path}: videos.{wildcards.video}.source.path"
    return [] if path is None else clear(existing, where, path)
