"""What the jobs of training.smk are given, and where their inputs lie."""


def bundled_models(study):
    """The models of a study whose weights are in this repository."""
    models = STUDIES[study].models.items()
    return [name for name, model in models if "bundled" in model.checkpoint]
