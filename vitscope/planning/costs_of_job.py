"""What a job costs: memory and time, from the cost of its network and its number of passes."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import accumulate, chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vitscope.errors import VitscopeError
from vitscope.files.whole import write_text
from vitscope.jobs.job import Job, Names, Network, Request, model_of
from vitscope.jobs.latents import VALUE_BYTES
from vitscope.measures import registry
from vitscope.settings.study import Study

if TYPE_CHECKING:
    import pandas as pd

    from vitscope.measures.work import Work


# Megabytes for three processes of Snakemake that run on a node, besides the script.
ON_A_NODE = 600
# Megabytes for the script itself, without torch or with it.
WITHOUT_TORCH = 300
WITH_TORCH = 590

# The most copies of the weights in memory at once: as read, as held, and changed on their way.
COPIES_OF_WEIGHTS = 4
# Bytes of memory for each byte of a network's `peak`: more than one, since allocators keep freed
# memory; docs/cluster.md has the measurements.
PEAKS_OF_PASS = 2.0
# Bytes of memory, besides the peak, for each byte of a network's `activations`, by computation.
SHARE_KEPT = {
    "pass": 0.0,
    "units": 0.1,  # Lesions use some results again.
    "gradient": 1.5,
    "product": 5.0,  # A Hessian product makes two backward passes.
}

# Multiply-adds per second in float32. For CPUs: of one core of the machine in docs/scale.md. For
# GPUs: half of what the maker of the T4, a slow GPU, states for it; no GPU was measured.
OPERATIONS_PER_SECOND = {"auto": 30e9, "cpu": 30e9, "cuda": 2e12}
# The factor from the expected time of a job to the time that it asks for.
SAFETY = 2.5
# Minutes that a job asks for besides its work: to wait for files, start and read.
LEAST_MINUTES = 15
# Seconds to start a job, with torch or without it.
START_WITH_TORCH = 2.5
START = 0.5


def network_cost_of_blocks(blocks: "pd.DataFrame", metadata: Mapping[str, str]) -> Network:
    """Return the cost of a network, from its block table and the table's metadata."""
    from vitscope.networks.finding.cut_points import head_costs

    head = head_costs(metadata)
    values = blocks["channels"] * blocks["height"] * blocks["width"]
    return Network(
        operations=int(blocks["operations"].sum()) + head.operations,
        activations=int(blocks["activations"].sum()) + head.activations,
        peak=max(int(blocks["peak"].max()), head.peak),
        weights=4 * (int(blocks["parameters"].sum()) + head.parameters),
        cut_points=len(blocks),
        values=int(values.sum()),
        sides=int(blocks[["height", "width"]].max(axis=1).sum()),
    )


@cache
def _read_network_cost(blocks: str, written: int) -> Network:
    """Read the cost of a network from a block table; cache it until the time `written` changes."""
    from vitscope.files.tables import read_metadata
    from vitscope.networks.finding.cut_points import BLOCKS

    return network_cost_of_blocks(BLOCKS.read(blocks), read_metadata(blocks))


_counted: dict[str, Network] = {}


def _count_cost_from_settings(name: str, settings: str) -> Network:
    from vitscope.networks.building.networks import empty_network
    from vitscope.networks.finding.blocks import list_blocks

    entry = json.loads(settings)
    network = entry["network"]
    blocks = list_blocks(name, empty_network(network), network, **entry["read_at"])
    return network_cost_of_blocks(blocks.table, blocks.metadata())


def count_network(study: Study, model: str) -> Network:
    """Count the cost of one image in a network, which is built without weights.

    Networks of equal settings, such as several seeds of one, are counted once.
    """
    settings = _network_settings_as_json(study, model)
    if settings not in _counted:
        _counted[settings] = _count_cost_from_settings(model, settings)
    return _counted[settings]


def _network_settings_as_json(study: Study, model: str) -> str:
    entry = {"network": study.network(model), "read_at": study.models[model].read_at()}
    return json.dumps(entry, sort_keys=True)


def request_of(study: Study, names: Names) -> Request:
    """Return the request of a study's job, with the model whose network it runs."""
    model = model_of(study, names)
    return Request(study, names if model is None else {**names, "model": model})


def with_inputs(job: Job, request: Request, inputs: Mapping[str, Any]) -> Request:
    """Add to a request what its input files tell: network, number of images, loaded bytes."""
    takes, known = job.takes_of(request), dict[str, Any]()
    if "blocks" in inputs:
        path = str(inputs["blocks"])
        known["network"] = _read_network_cost(path, Path(path).stat().st_mtime_ns)
    if takes.builds:
        # An untrained network has no block table yet, and some networks have no cut points.
        with suppress(VitscopeError):
            known["network"] = count_network(request.study, request.names["model"])
    images = inputs.get("train") or inputs.get("images")
    if isinstance(images, str):
        # Only training images may be left unstored.
        split = request.dataset.splits.get("train") if "train" in inputs else None
        known["images"] = Path(images).stat().st_size // request.dataset.bytes_of(split)
    given = [inputs.get(name) or [] for name in takes.loads]
    loaded = chain.from_iterable([each] if isinstance(each, str) else each for each in given)
    return replace(request, loaded=sum(Path(path).stat().st_size for path in loaded), **known)


def work(job: Job, request: Request) -> "Work | None":
    """Return the passes that a job makes, None if it makes none or they are not known yet."""
    counting = job.takes_of(request).work
    return counting(request) if counting else None


def seconds(job: Job, request: Request, per_pass: float | None = None) -> float | None:
    """Return the expected seconds, with start-up; None if unknown. `per_pass` is per image."""
    takes, doing, network = job.takes_of(request), work(job, request), request.network
    own = takes.seconds(request) if takes.seconds else 0
    if takes.work is None:
        return START + own
    if per_pass is None and network is not None:
        per_pass = network.operations / OPERATIONS_PER_SECOND[request.study.device]
    if doing is None or per_pass is None:
        return None
    return START_WITH_TORCH + own + doing.passes * per_pass


def minutes(job: Job, request: Request) -> int:
    """Return the minutes that a job asks a cluster for."""
    return LEAST_MINUTES + ceil(SAFETY * (seconds(job, request) or 0) / 60)


def megabytes(job: Job, request: Request) -> int:
    """Return the memory that a job asks a cluster for."""
    takes, doing, network = job.takes_of(request), work(job, request), request.network
    least = ON_A_NODE + takes.beside + (WITH_TORCH if takes.torch else WITHOUT_TORCH)
    held: float = COPIES_OF_WEIGHTS * request.loaded
    if doing is not None and network is not None:
        of_image = PEAKS_OF_PASS * network.peak + SHARE_KEPT[doing.keeps] * network.activations
        held += (COPIES_OF_WEIGHTS + doing.vectors) * network.weights + doing.batch * of_image
        held += doing.holds * 4 * network.values
    return ceil(least + held / 1e6)


# The file, in the folder of a run, that remembers the number of values in each network's latents.
COUNTED = Path(".snakemake/vitscope-latents.json")
# The same for the networks of bundled studies, so that planning these builds no network.
COUNTED_BEFORE = Path(__file__).with_name("latents.json")


def keeps_latents(study: Study, most_gb: float, counted: Path) -> bool:
    """Tell whether a study keeps its latents; with `auto`, if they take at most `most_gb`.

    `counted` is the file of earlier counts.
    """
    keep = study.analysis.keep_latents
    if keep != "auto":
        return bool(keep)
    # Ignore a fault of a network here: the job that lists its blocks reports it.
    with suppress(VitscopeError):
        return all(total <= 1e9 * most_gb for total in accumulate(latents_bytes(study, counted)))
    return False


def say_what_latents_cost(study: Study, most_gb: float, counted: Path) -> str:
    """Return a sentence that tells the size of a study's latents, and whether they are kept."""
    whole = sum(latents_bytes(study, counted)) / 1e9
    if keeps_latents(study, most_gb, counted):
        return f"Latents are kept: {whole:.3g} GB for all models and images."
    room = f"{whole:.3g} GB for all models and images"
    return f"Latents, {room}, are measured in memory, not written."


def latents_bytes(study: Study, counted: Path) -> Iterator[int]:
    """Yield the size in bytes of the latents of each model whose latents are measured."""
    measures = registry.of(study)
    names = [name for name in study.measures() if measures.declared(name).needs == "latents"]
    shown = {model for name in names for model in study.models_of(name)}
    known: dict[str, int] = json.loads(COUNTED_BEFORE.read_text(encoding="utf-8"))
    with suppress(OSError, ValueError, TypeError, AttributeError):
        found = json.loads(counted.read_text(encoding="utf-8"))
        known = {key: int(values) for key, values in found.items()} | known
    before = len(known)
    try:
        for model in sorted(shown):
            key = sha256(_network_settings_as_json(study, model).encode()).hexdigest()
            if key not in known:
                known[key] = count_network(study, model).values
            yield known[key] * study.images(model) * VALUE_BYTES[study.analysis.latents_dtype]
    finally:
        if len(known) > before:
            with suppress(OSError, VitscopeError):
                write_text(counted, json.dumps(known))
