"""Models at moments of their training, for figures by epoch: each is measured like any model."""

from collections.abc import Iterator
from dataclasses import replace

from vitscope.errors import VitscopeError, unknown
from vitscope.settings.keys import Figure, Model
from vitscope.settings.snapshots import END, epoch_of
from vitscope.settings.study import AT, Study


def add_moments(study: Study) -> Study:
    """Return a study whose figures by epoch show a model for each moment, which it has besides."""
    models, figures = dict(study.models), dict(study.figures)
    for name, figure in study.figures.items():
        if figure.by_epoch:
            shown = dict(_moments(study, figure, f"figures.{name}"))
            models |= shown
            figures[name] = replace(figure, models=[*shown], snapshots=None)
    return replace(study, models=models, figures=figures)


def _moments(study: Study, figure: Figure, key: str) -> Iterator[tuple[str, Model]]:
    """Yield the models of a figure at its moments, from first to last, by their names."""
    for name in figure.models:
        if name not in study.models:
            raise unknown(study.path, f"{key}.models", name, study.models)
        model, epochs = study.models[name], epochs_of(study, name)
        wanted = epochs if figure.snapshots is None else figure.snapshots
        for snapshot in wanted:
            if snapshot not in epochs:
                raise unknown(study.path, f"{key}.snapshots", snapshot, epochs)
        if len({*wanted}) < 2:
            raise VitscopeError(
                f"{study.path}: {key}: models.{name} has no snapshot of which it is "
                f"known after how many epochs it was taken: name some epoch_N in its `snapshots`, "
                f"for a figure by epoch."
            )
        for snapshot in sorted(wanted, key=epochs.__getitem__):
            epoch = epochs[snapshot]
            if snapshot == END:
                yield name, replace(model, epoch=epoch)
                continue
            yield (
                f"{name}{AT}{snapshot}",
                replace(
                    model,
                    label=f"{model.label}, epoch {epoch}",
                    checkpoint=model.snapshots[snapshot],
                    snapshots={},
                    history=None,
                    epoch=epoch,
                ),
            )


def epochs_of(study: Study, name: str) -> dict[str, int]:
    """Return after how many epochs the snapshots of a model were taken, where that is known.

    Of two after as many, only the first is there.
    """
    recipe = study.recipe(name)
    found = {each: epoch_of(each, recipe.warmup_epochs) for each in study.models[name].snapshots}
    found[END] = recipe.epochs
    known: dict[int, str] = {}
    for snapshot, epoch in found.items():
        if epoch is not None:
            known.setdefault(epoch, snapshot)
    return {snapshot: epoch for epoch, snapshot in known.items()}
