"""What the jobs of training.smk are given, and where their inputs lie."""


def bundled_models(study):
    """The models of a study whose weights are in this repository."""
    models = STUDIES[study].models
    return [n for n in STUDIES[study].own_models if "bundled" in models[n].checkpoint]
