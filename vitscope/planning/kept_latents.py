"""Which studies keep their latents: those of which all latents together are small.

How many values the latents of a network have takes torch to count, so that it is counted once and
then read from a file.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text
from vitscope.jobs.latents import VALUE_BYTES
from vitscope.measures import registry
from vitscope.planning import costs
from vitscope.settings.study import Study

# The file, in the folder of a run.
COUNTED = Path(".snakemake/vitscope-latents.json")


def keeps_latents(study: Study, most_gb: float, counted: Path) -> bool:
    """Tell whether a study keeps its latents; `counted` is the file of what was counted before."""
    keep = study.analysis.keep_latents
    if keep != "auto":
        return bool(keep)
    total = 0
    with suppress(VitscopeError):
        for size in latents_bytes(study, counted):
            total += size
            if total > 1e9 * most_gb:
                return False
        return True
    # What is wrong with the network is said by the job that lists its blocks.
    return False


def say_what_is_kept(study: Study, most_gb: float, counted: Path) -> str:
    """Say how much the latents of a study take, and what becomes of them."""
    whole = sum(latents_bytes(study, counted)) / 1e9
    if keeps_latents(study, most_gb, counted):
        return f"Latents are kept: {whole:.3g} GB for all models and images."
    return (
        f"Latents, {whole:.3g} GB for all models and images, are measured in memory, not written."
    )


def latents_bytes(study: Study, counted: Path) -> Iterator[int]:
    """Yield the bytes of the latents of each model of which they are measured."""
    measures = registry.of(study)
    names = [name for name in study.measures() if measures.declared(name).needs == "latents"]
    shown = {model for name in names for model in study.models_of(name)}
    known = _read(counted)
    before = len(known)
    try:
        for model in sorted(shown):
            entry = {"network": study.network(model), "read_at": study.models[model].read_at()}
            key = sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()
            if key not in known:
                known[key] = costs.count_network(study, model).values
            yield known[key] * study.images(model) * VALUE_BYTES[study.analysis.latents_dtype]
    finally:
        if len(known) > before:
            with suppress(OSError, VitscopeError):
                write_text(counted, json.dumps(known))


def _read(counted: Path) -> dict[str, int]:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = json.loads(counted.read_text(encoding="utf-8"))
        return {key: int(values) for key, values in found.items()}
    return {}
