"""What the jobs of training.smk are given, and where their inputs lie."""


def bundled_name(path):
    """Where a file of a training is bundled: in a folder of its model, or of its build-up."""
    folder = Path(path).parent.name
    is_step = folder.startswith("step_")
    return f"buildup/{folder}{Path(path).suffix}" if is_step else f"{folder}/{Path(path).name}"


def bundled_models(study):
    """The models of a study whose weights are in this repository."""
    models = STUDIES[study].models
    return [n for n in STUDIES[study].own_models if "bundled" in models[n].checkpoint]
