"""What the jobs of training.smk are given, and where their inputs lie."""


def bundled_name(path):
    """Where a file of a training is bundled: in a folder of its model, or of its build-up."""
    folder = Path(path).parent.name
    is_step = folder.startswith("step_")
    return f"buildup/{folder}{Path(path).suffix}" if is_step else f"{folder}/{Path(path).name}"


def bundled_outputs(study):
    """What trainings make of the files in this repository that the models of a study name."""
    models = STUDIES[study].models
    return [
        f"<results>/{study}/training/{name}/{Path(entry['bundled']).name}"
        for name in STUDIES[study].own_models
        for entry in models[name].files().values()
        if "bundled" in entry
    ]
