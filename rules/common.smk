"""Every helper function of the rules: names, paths and settings, all from the studies."""

import fcntl
import os
import re
import subprocess
import sys
from functools import cache
from math import ceil, sqrt
from pathlib import Path
from shutil import which

from vitscope import origins
from vitscope.data.places import (
    archive_needed,
    existing,
    listing_digest,
    local_files,
    local_path,
)
from vitscope.digests import code_digest
from vitscope.errors import VitscopeError
from vitscope.figures import KINDS, module_of
from vitscope.origins import END
from vitscope.sizes import latents_bytes
from vitscope.studies import load_config, shown_snapshots, snapshots_of
from vitscope.yamlfile import load_yaml

# Relative, so that a folder of results that moves is still up to date.
ROOT = Path(os.path.relpath(workflow.basedir))
FORMATS = ["pdf", "svg", "png"]
STYLE = str(ROOT / "resources" / "style.mplstyle")
PUBLISHED = ROOT / "resources" / "published"
CAPTIONS = ROOT / "report" / "kinds"


def clear(function, *arguments):
    """Call a function of vitscope; what a user got wrong ends in its one sentence."""
    try:
        return function(*arguments)
    except VitscopeError as error:
        # Snakemake adds a traceback to errors of its own kind and none to this.
        sys.exit(f"vitscope: {error}")


def start_alone():
    """Stop if another run is at work in this folder, or what one left behind on a cluster.

    The lock belongs to the process: unlike Snakemake's own, it does not outlive a run that is killed.
    """
    lock = os.open(".snakemake/run.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("vitscope: another run is at work in this folder: wait for it to end.")
    except OSError as error:
        sys.exit(f"vitscope: this file system has no locks ({error}): mount it with flock.")
    left = jobs_left_in_slurm()
    if left:
        sys.exit(
            f"vitscope: a run that was killed left {len(left)} jobs in Slurm that write into this "
            f"folder: wait for them to end, or end them by: scancel {' '.join(left)}"
        )


def jobs_left_in_slurm():
    """The jobs of Slurm that were started from this folder; the plugin names each by its run."""
    if not Path(".snakemake/slurm_logs").is_dir() or not which("squeue"):
        return []
    asked = ["squeue", "--me", "--noheader", "--format=%A %j %Z"]
    answer = subprocess.run(asked, capture_output=True, text=True)
    if answer.returncode:
        sys.exit(f"vitscope: Slurm does not say whether jobs are left: {answer.stderr.strip()}")
    jobs = [line.split(maxsplit=2) for line in answer.stdout.splitlines()]
    uuid = r"(\w+_)?\w{8}(-\w{4}){3}-\w{12}"
    here = os.path.realpath(".")
    ours = {
        job for job, name, at in jobs if re.fullmatch(uuid, name) and os.path.realpath(at) == here
    }
    return sorted(ours, key=int)


def check_places():
    """Stop before the first job if one is to write to a folder where it may not."""
    jobs = workflow.dag.needrun_jobs()
    folders = {Path(file).parent for job in jobs for file in (*job.output, *job.log)}
    there = {next(f for f in (folder, *folder.parents) if f.exists()) for folder in folders}
    for folder in sorted(there):
        if not os.access(folder, os.W_OK):
            sys.exit(f"vitscope: {folder} may not be written: make it writable.")


# Snakemake has read these already, but took the last of keys that are there twice.
for configfile_path in workflow.configfiles:
    clear(load_yaml, Path(os.path.relpath(configfile_path)))

DEFAULT, STUDIES = clear(load_config, config, "config/config.yaml or --config")

# Scripts find them here, and not among params: those decide which downloads users of a cache share.
config["locks"] = {name: str(study.lock_path) for name, study in STUDIES.items()}


# Latents

LATENTS_MB = config.get("max_latents_gb") and max(1, int(1000 * config["max_latents_gb"]))
if LATENTS_MB:
    workflow.register_resource("latents_mb", LATENTS_MB)


def room_to_measure(wildcards, input):
    """The megabytes of latents that a measurement keeps from being deleted."""
    return min(LATENTS_MB, megabytes(input.latents)) if LATENTS_MB else 0


def room_to_extract(wildcards, input):
    """The megabytes of latents that are to be extracted.

    Latents exist for longer than their extraction runs. But measurements have priority, so that an
    extraction starts only when no measurement could: as long as it takes no less room than each of
    those, all latents that exist are in the hands of a job that runs. Those that a study keeps have
    no bound.
    """
    study = study_of(wildcards)
    bounded = LATENTS_MB and study.name not in keeping_latents()
    if not (bounded and Path(input.blocks).exists()):
        return 0
    images, dtype = passes_of_shard(wildcards), study.settings["analysis"]["latents_dtype"]
    # The header of the file fits into one more.
    own = ceil(latents_bytes(block_table(input.blocks), images, dtype) / 1e6) + 1
    if own > LATENTS_MB:
        sys.exit(
            f"vitscope: {study.path}: a shard of latents of {wildcards.model} takes "
            f"{own / 1000:g} GB and max_latents_gb is {config['max_latents_gb']:g}: lower "
            f"analysis.shard_size, or raise max_latents_gb."
        )
    results = Path(input.blocks).parents[2]
    existing = [
        megabytes(path)
        for name in STUDIES.keys() - keeping_latents()
        for path in results.glob(f"{name}/latents/*/*.safetensors")
    ]
    return min(LATENTS_MB, max([own, *existing]))


def megabytes(path):
    """The size of a file; 0 if it is not there."""
    try:
        return ceil(os.stat(path).st_size / 1e6)
    except FileNotFoundError:
        return 0


# Names


def one_of(names):
    """A wildcard constraint that matches these names and nothing else."""
    return "|".join(re.escape(name) for name in sorted(names)) or "(?!)"


def names_in(section):
    """The names that any study uses in a section."""
    return {name for study in STUDIES.values() for name in study.settings[section]}


def split_names():
    """The names of all splits of all data sets."""
    data = [study.settings["data"].values() for study in STUDIES.values()]
    return {split for datasets in data for dataset in datasets for split in dataset["splits"]}


def bundled_models(study):
    """The models of a study whose weights are in this repository."""
    models = STUDIES[study].settings["models"].items()
    return [name for name, model in models if "bundled" in model["checkpoint"]]


def snapshot_names():
    """The names of all snapshots of all models."""
    models = [study.settings["models"].values() for study in STUDIES.values()]
    return {name for named in models for model in named for name in snapshots_of(model)}


def tables_in(*studies):
    """The tables that the figures of some studies need, or of all."""
    return {table for study in studies or STUDIES for table in STUDIES[study].tables()}


def keeping_latents():
    """The studies that keep their latents."""
    return {name for name, s in STUDIES.items() if s.settings["analysis"]["keep_latents"]}


# Settings of the study, model, data set or figure of a path


def study_of(wildcards):
    """The study of a path; a path that names none belongs to the default study."""
    return STUDIES[getattr(wildcards, "study", DEFAULT)]


def model_of(wildcards):
    """The settings of a model."""
    return study_of(wildcards).model(wildcards.model)


def dataset_of(wildcards):
    """The settings of a data set."""
    return study_of(wildcards).dataset(wildcards.dataset)


def figure_of(wildcards):
    """The settings of a figure."""
    return study_of(wildcards).figure(wildcards.figure)


def network_of(wildcards):
    """What it takes to build and feed a model."""
    model = model_of(wildcards)
    data = study_of(wildcards).dataset(model["data"])
    settings = {key: model[key] for key in ("family", "arch", "mean", "std")}
    return settings | {key: data[key] for key in ("classes", "image_size")}


def snapshot_of(wildcards):
    """The entry of a snapshot of a model."""
    return clear(study_of(wildcards).snapshot, wildcards.model, wildcards.snapshot)


def recipe_of(wildcards):
    """The recipe that a model is trained by."""
    return clear(study_of(wildcards).recipe, wildcards.model)


AUGMENTING = (
    "images",
    "seed",
    "batch_size",
    "label_smoothing",
    "mixup",
    "cutmix",
    "mixing_probability",
    "randaugment",
    "erasing",
    "shift",
    "flip",
)
# What of these decides which images a model has seen.
TRAINED_ON = ("images", "seed")


def augmentation_of(wildcards):
    """What of a recipe decides how training images are augmented."""
    recipe = recipe_of(wildcards)
    return {key: recipe[key] for key in AUGMENTING}


def alike_of(wildcards):
    """How images are augmented where models are compared: alike, from what each is trained on."""
    own, shared = augmentation_of(wildcards), study_of(wildcards).settings["training"]
    return {key: own[key] if key in TRAINED_ON else shared[key] for key in own}


def drawing_alike(wildcards):
    """Which training images are drawn where models are compared; as in training, never clean."""
    analysis = study_of(wildcards).settings["analysis"]
    images, seed = analysis["fit"]["images"], analysis["augmented"]["seed"]
    return {"images": images, "seed": seed, "clean": False}


def drawing_of(wildcards):
    """Which training images are drawn once for measurements of the loss."""
    augmented = study_of(wildcards).settings["analysis"]["augmented"]
    return {key: augmented[key] for key in ("images", "seed", "clean")}


def split_settings(wildcards):
    """The settings that the artefact of a split depends on, and no others."""
    dataset = dataset_of(wildcards)
    keys = ("source", "classes", "image_size", "resize", "interpolation")
    splits = {wildcards.split: dataset["splits"][wildcards.split]}
    return {key: dataset[key] for key in keys} | {"splits": splits}


def listing_of(wildcards):
    """What the folder of a split holds, if it is read from one; its own date does not tell."""
    path = local_path(dataset_of(wildcards)["source"], wildcards.split)
    return path and clear(listing_digest, path)


def analysis_of(*keys):
    """The settings of the analysis that a rule depends on, and no others."""

    def settings(wildcards):
        analysis = study_of(wildcards).settings["analysis"]
        return {key: analysis[key] for key in keys}

    return settings


def selection_of(wildcards):
    """Which images a model is measured on, and how they are cut into shards."""
    analysis = analysis_of("seed", "shard_size")(wildcards)
    return analysis | {"images": study_of(wildcards).images(wildcards.model)}


def classified(wildcards):
    """Which images of a split are classified."""
    analysis = study_of(wildcards).settings["analysis"]
    conflict = wildcards.split == analysis["shape_texture"]["split"]
    section = "shape_texture" if conflict else "classification"
    return {"wanted": analysis[section]["images"], "seed": analysis["seed"]}


def probing(section):
    """The settings of a measurement that needs the model itself, and no others."""

    def settings(wildcards):
        analysis = study_of(wildcards).settings["analysis"]
        return {key: analysis[key] for key in ("seed", "batch_size")} | analysis[section]

    return settings


def loss_of(wildcards):
    """The loss whose Hessian is measured: of how many images, with which weight decay."""
    hessian = study_of(wildcards).settings["analysis"]["hessian"]
    decay = recipe_of(wildcards)["weight_decay"] if hessian["l2"] else 0.0
    return {"batch_size": hessian["batch_size"], "weight_decay": decay}


def hessian_of(**keys):
    """The settings of the Hessian that a rule depends on, and no others, by the library's names."""

    def settings(wildcards):
        hessian = study_of(wildcards).settings["analysis"]["hessian"]
        return {name: hessian[key] for name, key in keys.items()}

    return settings


def batches_of_part(wildcards):
    """The batches of augmented images that one job measures."""
    hessian = study_of(wildcards).settings["analysis"]["hessian"]
    first = int(wildcards.part) * hessian["batches_per_job"]
    return list(range(first, min(first + hessian["batches_per_job"], hessian["batches"])))


def landscape_of(wildcards):
    """How the loss on a plane is measured, but for the rows of a part; 0 weight decay leaves L2 out."""
    landscape = study_of(wildcards).settings["analysis"]["landscape"]
    decay = recipe_of(wildcards)["weight_decay"] if landscape["l2"] else 0
    keys = ("points", "radius", "seed", "precision", "batch_size")
    return {key: landscape[key] for key in keys} | {"weight_decay": decay}


def rows_of_landscape(wildcards):
    """The rows of the grid that one job measures: the first, and the one after the last."""
    landscape = study_of(wildcards).settings["analysis"]["landscape"]
    first = int(wildcards.part) * landscape["rows_per_job"]
    return first, min(first + landscape["rows_per_job"], landscape["points"])


def robustness_of(*keys):
    """The settings of the robustness that a rule depends on, and no others."""

    def settings(wildcards):
        robustness = study_of(wildcards).settings["analysis"]["robustness"]
        return {key: robustness[key] for key in keys}

    return settings


def members_of(wildcards):
    """The models of a figure: their names, labels and families."""
    models = {name: study_of(wildcards).model(name) for name in figure_of(wildcards)["models"]}
    return [
        {"model": name, "label": model["label"], "family": model["family"]}
        for name, model in models.items()
    ]


def snapshots_by_figure(wildcards):
    """Which moments of training each figure is about, if it is about any."""
    figures = study_of(wildcards).settings["figures"]
    return {name: shown for name in figures if (shown := shown_snapshots(figures[name]))}


def title_of(wildcards):
    """What to call a study."""
    study = study_of(wildcards)
    return f"{study.name} ({study.settings['title']})"


def caption_of(wildcards):
    """What a figure of its kind shows, and how to read it."""
    return (CAPTIONS / f"{figure_of(wildcards)['kind']}.rst").read_text(encoding="utf-8")


def labels_of(wildcards):
    """What to call each model."""
    study = study_of(wildcards)
    return {name: study.model(name)["label"] for name in study.models()}


def facts_of(wildcards):
    """What a figure is made from, for its caption and its metadata."""
    study = study_of(wildcards)
    models = {name: study.model(name) for name in figure_of(wildcards)["models"]}
    facts = {"Study": title_of(wildcards)}
    data = sorted({model["data"] for model in models.values()})
    table = KINDS[figure_of(wildcards)["kind"]].tables[0]
    splits = " and ".join(study.splits(table))
    facts["Data"] = ", ".join([*data, f"{splits} images"] if splits else data)
    for model in models.values():
        facts |= weights_behind(table, model)
    return facts


def weights_behind(table, model):
    """Where the weights come from that a table is about."""
    label = model["label"]
    if table == "trajectory" and "history" in model:
        history = origins.described(model["history"])
        return {f"Trajectory of {label}": f"recorded in training, {history}"}
    facts = {f"Checkpoint of {label}": origins.described(model["checkpoint"])}
    if table == "trajectory":
        facts[f"Trajectory of {label}"] = f"its snapshots {', '.join(snapshots_of(model))}"
    return facts


# Paths


def source_files(wildcards):
    """The files that the artefact of a split is made from."""
    dataset = dataset_of(wildcards)
    if archive_needed(dataset["source"]):
        return collect(rules.fetch_archive.output, study=wildcards.study, dataset=wildcards.dataset)
    where = f"{study_of(wildcards).path}: data.{wildcards.dataset}.source"
    return clear(local_files, where, dataset["source"], wildcards.split)


def split_for(split):
    """The artefact of a split of the data set that a model is measured on."""

    def path(wildcards):
        study = study_of(wildcards)
        return rules.build_split.output.images.format(
            study=study.name,
            dataset=study.model(wildcards.model)["data"],
            split=split or study.settings["analysis"]["split"],
        )

    return path


def training_split(wildcards):
    """The artefact that training images are drawn from."""
    split = study_of(wildcards).settings["analysis"]["augmented"]["split"]
    return split_for(split)(wildcards)


def split_of_table(table):
    """The artefact of the split that a table is about."""

    def path(wildcards):
        return split_for(study_of(wildcards).split(table))(wildcards)

    return path


def predictions_for(table):
    """What a model says of the images that a table is about."""

    def path(wildcards):
        study = study_of(wildcards)
        return rules.predict.output.predictions.format(
            study=study.name, model=wildcards.model, split=study.split(table)
        )

    return path


def shown_splits(wildcards):
    """The artefacts that the figures of a study are made from."""
    study = study_of(wildcards)
    shown = {
        (study.model(name)["data"], split)
        for table in study.tables()
        for name in study.models(table)
        for split in study.splits(table)
    }
    return [
        rules.build_split.output.images.format(study=study.name, dataset=dataset, split=split)
        for dataset, split in sorted(shown)
    ]


def trained_here(path):
    """Tell whether a file is one that the rule train_model makes."""
    return any(made.match(path) for made in rules.train_model.output)


def named_file(wildcards, key, entry, download=None):
    """The file that an entry of a model names: from training, on this machine or downloaded."""
    if trained_here(entry.get("path", "")):
        return entry["path"]
    where = f"{study_of(wildcards).path}: models.{wildcards.model}.{key}"
    local = clear(origins.local_file, where, entry, ROOT)
    return download if local is None else str(local)


def checkpoint_file(wildcards):
    """The file that a checkpoint is converted from."""
    download = rules.fetch_checkpoint.output.checkpoint.format(**wildcards)
    return named_file(wildcards, "checkpoint", model_of(wildcards)["checkpoint"], download)


def snapshot_file(wildcards):
    """The file that a snapshot is converted from."""
    download = rules.fetch_snapshot.output.checkpoint.format(**wildcards)
    key = f"snapshots.{wildcards.snapshot}"
    return named_file(wildcards, key, snapshot_of(wildcards), download)


def weights_at(snapshot, wildcards):
    """The weights of a model at a moment of its training, at the end its checkpoint."""
    made = rules.convert_checkpoint if snapshot == END else rules.convert_snapshot
    names = {"study": wildcards.study, "model": wildcards.model, "snapshot": snapshot}
    return made.output.checkpoint.format(**names)


def weights_of(wildcards):
    """The weights of a model at the moment of its training that a path names."""
    return weights_at(wildcards.snapshot, wildcards)


def moments_of(wildcards):
    """What the trajectory of a model is taken from: its history, or else its snapshots in order."""
    model = model_of(wildcards)
    if "history" in model:
        return {"history": named_file(wildcards, "history", model["history"])}
    return {"snapshots": [weights_at(name, wildcards) for name in snapshots_of(model)]}


def trajectory_of(wildcards):
    """What is known of the moments of a trajectory, and of the model if its weights are read."""
    model = model_of(wildcards)
    if "history" not in model:
        network = network_of(wildcards)
        return {"names": snapshots_of(model), "warmup": "warmup", "model": network}
    known = "training" in study_of(wildcards).settings
    return {"warmup": str(recipe_of(wildcards)["warmup_epochs"]) if known else None}


def alike_images(wildcards):
    """Images that are augmented alike: one draw of all models that it fits, named by the first."""
    study = study_of(wildcards)

    def fitting(name):
        model, recipe = study.model(name), clear(study.recipe, name)
        return [model[k] for k in ("data", "mean", "std")], [recipe[k] for k in TRAINED_ON]

    names = study.settings["models"]
    first = next(name for name in names if fitting(name) == fitting(wildcards.model))
    return rules.augment_alike.output.images.format(study=study.name, model=first)


def parts_of_hessian(table, path):
    """One path for every part, of every snapshot that the figures of a table show."""

    def paths(wildcards):
        study = study_of(wildcards)
        hessian = study.settings["analysis"]["hessian"]
        return collect(
            path,
            study=study.name,
            model=wildcards.model,
            snapshot=study.snapshots(table, wildcards.model),
            part=range(ceil(hessian["batches"] / hessian["batches_per_job"])),
        )

    return paths


def shards_of(path):
    """One path for every shard of the images that a model is measured on."""

    def paths(wildcards):
        study = study_of(wildcards)
        shards = range(study.shards(wildcards.model))
        return collect(path, study=study.name, model=wildcards.model, shard=shards)

    return paths


def radial_profiles(wildcards):
    """The radial profiles of a model, where the study measures them."""
    radial = study_of(wildcards).settings["analysis"]["fourier"]["radial"]
    return shards_of(rules.measure_spectrum.output.radial)(wildcards) if radial else []


def all_models(path):
    """One path for every model that a study shows."""

    def paths(wildcards):
        study = study_of(wildcards)
        return collect(path, study=study.name, model=study.models())

    return paths


def measured_split(wildcards):
    """The artefact of the split of a data set that a study measures."""
    study = study_of(wildcards)
    return rules.build_split.output.images.format(
        study=study.name,
        dataset=wildcards.dataset,
        split=study.settings["analysis"]["split"],
    )


def official_corrupted(wildcards):
    """The official corrupted images of a data set, if the study has them."""
    path = dataset_of(wildcards)["corrupted"]
    where = f"{study_of(wildcards).path}: data.{wildcards.dataset}.corrupted"
    return [] if path is None else [clear(existing, where, Path(path).expanduser())]


def corrupted_of(wildcards):
    """The corrupted images that one job measures a model on."""
    study = study_of(wildcards)
    settings = study.settings["analysis"]["robustness"]
    size = settings["corruptions_per_job"]
    first = int(wildcards.part) * size
    return collect(
        rules.corrupt_images.output.images,
        study=study.name,
        dataset=study.model(wildcards.model)["data"],
        corruption=settings["corruptions"][first : first + size],
    )


def parts_of_robustness(wildcards):
    """What the jobs measured that share the corruptions among them."""
    study = study_of(wildcards)
    settings = study.settings["analysis"]["robustness"]
    parts = range(ceil(len(settings["corruptions"]) / settings["corruptions_per_job"]))
    path = rules.measure_robustness.output.robustness
    return collect(path, study=study.name, model=wildcards.model, part=parts)


def parts_of_landscape(wildcards):
    """What the jobs measured that share the rows of the grid among them."""
    study = study_of(wildcards)
    landscape = study.settings["analysis"]["landscape"]
    parts = range(ceil(landscape["points"] / landscape["rows_per_job"]))
    path = rules.measure_landscape.output.landscape
    return collect(path, study=study.name, model=wildcards.model, part=parts)


# A table of one model; rules that make one write it here.
TABLE_OF_MODEL = "<results>/{study}/{table}/{model}.parquet"


def models_in_table(wildcards):
    """The tables of all models of which a study makes one table."""
    study = study_of(wildcards)
    models = study.models(wildcards.table)
    return collect(TABLE_OF_MODEL, study=study.name, table=wildcards.table, model=models)


def tables_of_figure(wildcards):
    """The tables of the models of a figure, by their names."""
    figure = figure_of(wildcards)
    study, models = study_of(wildcards).name, figure["models"]
    return {
        table: collect(TABLE_OF_MODEL, study=study, table=table, model=models)
        for table in KINDS[figure["kind"]].tables
    }


def tables_of_study(wildcards):
    """The tables of all models, by their names."""
    study = study_of(wildcards)
    return {
        table: rules.tabulate.output.table.format(study=study.name, table=table)
        for table in study.tables()
    }


def published_of_figure(wildcards):
    """The published points that a figure shows, if any."""
    published = figure_of(wildcards).get("published")
    return [str(PUBLISHED / published["file"])] if published else []


def published_files(wildcards):
    """The published points that the figures of a study show."""
    figures = study_of(wildcards).settings["figures"].values()
    return sorted({str(PUBLISHED / f["published"]["file"]) for f in figures if "published" in f})


# Code


def code(script, *modules):
    """A digest of a script and of what it imports: a rule runs again when these change."""
    return code_digest(ROOT / "scripts" / f"{script}.py", *modules)


def figure_code(wildcards):
    """Like `code`, for the kind of the figure, which the script imports by its name."""
    return code("draw_figure", module_of(figure_of(wildcards)["kind"]))


def trajectory_code(wildcards):
    """Like `code`; a trajectory that was recorded in training takes no family."""
    script = "trace_trajectory"
    recorded = "history" in model_of(wildcards)
    return code(script) if recorded else family_code(script)(wildcards)


def family_code(script):
    """Like `code`, with the family of the model, which scripts import by its name."""

    def digest(wildcards):
        return code(script, f"vitscope.families.{model_of(wildcards)['family']}")

    return digest
