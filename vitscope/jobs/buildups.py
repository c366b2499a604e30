"""What the jobs of a build-up are given: what it tries, and how its networks are trained."""

from vitscope.buildup import rule
from vitscope.jobs.job import Study, Values


def plan(study: Study, name: str) -> Values:
    """Return what a build-up tries: its baseline as an AlterNet, and how far it goes."""
    entry = study.buildups[name]
    baseline = study.network(entry.baseline)
    kept = ("block", "blocks", "width")
    arch = {key: value for key, value in baseline["arch"].items() if key in kept}
    own = {key: getattr(entry, key) for key in ("heads", "head_dim", "window")}
    return {
        "baseline": baseline | {"family": rule.FAMILY, "arch": arch | own},
        "blocks": arch["blocks"],
        "patience": entry.patience,
        "steps": entry.steps,
    }


def weights_of_steps(study: Study, name: str) -> str:
    """Return whose weights the networks of a build-up have: `bundled`, or `trained` here."""
    return "trained" if study.buildups[name].weights is None else "bundled"


def bundled_step(study: Study, name: str, step: int) -> str | None:
    """Return where the bundled weights of a step are, below the root; None if they are trained."""
    weights = study.buildups[name].weights
    return None if weights is None else f"{weights['bundled']}/step_{step}.safetensors"
