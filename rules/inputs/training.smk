"""What rules/training.smk asks for: inputs, outputs and params by wildcards."""


def bundled_outputs(wildcards):
    """Return the training outputs that `mini` bundles, each in the folder of its own model."""
    study = exit_on_user_error(ALL_STUDIES.__getitem__, "mini")
    return [
        f"<results>/mini/training/{name}/{Path(entry['bundled']).name}"
        for name in study.own_models
        for entry in study.models[name].files().values()
        if "bundled" in entry and Path(entry["bundled"]).parent.name == name
    ]
