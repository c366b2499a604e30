"""What a job asks of a cluster: memory, time and a GPU, by what was measured, with room to spare.

Each request doubles at every further attempt. On one machine they limit nothing, unless
`--resources mem_mb=...` says what all jobs together may take. Every job runs on one thread, so that
its results are the same bytes everywhere: shards and parts are what fills more cores.
"""

# Megabytes at the peak. On a node, Snakemake runs three times beside the script.
ON_A_NODE = 600
WITH_ARRAYS = 300
WITH_TORCH = 700

# How often the weights are in memory: as read, as held, and changed on their way.
COPIES_OF_WEIGHTS = 4
# Of a landscape: where the weights were, and two directions to move them in.
VECTORS_OF_LANDSCAPE = 3
# Bytes of weights that nobody has seen yet.
UNSEEN_WEIGHTS = 1e8
# What a model computes of an image, in bytes, over the root of its bytes of weights: the widths of
# its layers are about that. At the peak of a pass; kept for one back; kept for two, in a product with
# the Hessian.
MAPS_OF_PASS = 800
MAPS_OF_TRAINING = 12_000
MAPS_OF_PRODUCT = 33_000

# Minutes of everything but the work itself: waiting for files, starting, reading.
LEAST_MINUTES = 15
# Of every weight, a model makes at most some 400 products per image (ViT/16 of 224 pixels); a slow
# core makes 5e9 in a second.
PRODUCTS_PER_WEIGHT = 400
PRODUCTS_PER_MINUTE = 60 * 5e9
BYTES_PER_WEIGHT = 4
# What a product with the Hessian takes, in forward passes.
PASSES_OF_A_PRODUCT = 6
# Seconds to train on one image of 32x32 pixels once.
SECONDS_OF_TRAINING = 0.01
# The least of vectors that the largest eigenvalues take: LARGEST_BASIS of vitscope.hessian.lanczos.
LEAST_VECTORS = 64
# Where a study says "all images", or the number of units of a model is not known.
ALL_IMAGES = 10_000
UNITS = 50


def growing(first, attempt):
    """Double a request at every further attempt."""
    return ceil(first) * 2 ** (attempt - 1)


def analysis_for(wildcards, section=None):
    """The settings of the analysis of a path, or a section of them."""
    analysis = study_of(wildcards).settings["analysis"]
    return analysis[section] if section else analysis


def gpu_of(wildcards):
    """One GPU where the study demands it; `device: auto` takes what there is and asks for none."""
    return int(study_of(wildcards).settings["device"] == "cuda")


# Memory, in megabytes


def bytes_of_weights(input):
    """The size of the weights that a job reads."""
    return os.path.getsize(input.get("checkpoint") or input.get("weights"))


def memory_of_model(weights, maps, images, attempt, vectors=0):
    """Of a job that holds a model, what it computes of some images, and vectors of weights."""
    held = (COPIES_OF_WEIGHTS + vectors) * weights + images * maps * sqrt(weights)
    return growing(ON_A_NODE + WITH_TORCH + held / 1e6, attempt)


def memory_of_arrays(wildcards, attempt):
    """Of a job that reads images or latents piece by piece, without torch."""
    return growing(ON_A_NODE + WITH_ARRAYS, attempt)


def memory_of_drawing(wildcards, attempt):
    """Of a job that draws images by torch, and runs no model."""
    return growing(ON_A_NODE + WITH_TORCH, attempt)


def memory_of_passes(wildcards, input, attempt):
    """Of a job that runs a model on batches."""
    images = analysis_for(wildcards)["batch_size"]
    return memory_of_model(bytes_of_weights(input), MAPS_OF_PASS, images, attempt)


def memory_of_landscape(wildcards, input, attempt):
    """Of a job that runs a model at other weights, on batches of its own size."""
    images = analysis_for(wildcards, "landscape")["batch_size"]
    model = bytes_of_weights(input), MAPS_OF_PASS, images
    return memory_of_model(*model, attempt, VECTORS_OF_LANDSCAPE)


def memory_of_hessian(vectors):
    """Of a job that takes products with the Hessian and keeps so many vectors of weights."""

    def megabytes(wildcards, input, attempt):
        hessian = analysis_for(wildcards, "hessian")
        model = bytes_of_weights(input), MAPS_OF_PRODUCT, hessian["batch_size"]
        return memory_of_model(*model, attempt, vectors(hessian))

    return megabytes


def vectors_of_largest(hessian):
    """How many vectors the largest eigenvalues take."""
    return max(LEAST_VECTORS, 3 * hessian["top"])


def vectors_of_density(hessian):
    """How many vectors the spectral density takes."""
    return hessian["density_steps"]


def memory_of_training(wildcards, attempt):
    """Of a job that trains a model."""
    images = recipe_of(wildcards)["batch_size"]
    return memory_of_model(UNSEEN_WEIGHTS, MAPS_OF_TRAINING, images, attempt)


# Time, in minutes


def minutes_of_arrays(wildcards, attempt):
    """Of a job without a model: it is bound by reading."""
    return growing(LEAST_MINUTES, attempt)


def minutes_of(passes):
    """Of a job that runs so many images through a model."""

    def minutes(wildcards, input, attempt):
        weights = bytes_of_weights(input) / BYTES_PER_WEIGHT
        products = passes(wildcards) * weights * PRODUCTS_PER_WEIGHT
        return growing(LEAST_MINUTES + products / PRODUCTS_PER_MINUTE, attempt)

    return minutes


def minutes_of_training(wildcards, attempt):
    """Of a job that trains a model."""
    recipe, size = recipe_of(wildcards), network_of(wildcards)["image_size"]
    data = study_of(wildcards).dataset(model_of(wildcards)["data"])
    images = recipe["images"] or data["splits"]["train"]["images"] or ALL_IMAGES
    seconds = recipe["epochs"] * images * (size / 32) ** 2 * SECONDS_OF_TRAINING
    return growing(LEAST_MINUTES + seconds / 60, attempt)


# Images that a job runs through a model, each as often as it does


def passes_of_shard(wildcards):
    """Of a shard of latents."""
    return min(analysis_for(wildcards)["shard_size"], study_of(wildcards).images(wildcards.model))


def passes_of_prediction(wildcards):
    """Of the images of a split."""
    return classified(wildcards)["wanted"] or ALL_IMAGES


def passes_of_fit(wildcards):
    """Of augmented images."""
    return analysis_for(wildcards, "fit")["images"]


def passes_of_noise(wildcards):
    """Of images without noise, and under noise of every frequency."""
    noise = analysis_for(wildcards, "frequency_noise")
    return (noise["images"] or ALL_IMAGES) * (1 + len(noise["frequencies"]) * noise["seeds"])


def passes_of_lesions(wildcards):
    """Of images through the model without each of its units."""
    return (analysis_for(wildcards, "lesion")["images"] or ALL_IMAGES) * UNITS


def passes_of_robustness(wildcards):
    """Of images under the corruptions of a part."""
    settings = analysis_for(wildcards, "robustness")
    views = 1 + settings["corruptions_per_job"] * len(settings["severities"])
    return (settings["images"] or ALL_IMAGES) * views


def passes_of_landscape(wildcards):
    """Of augmented images at the points of a part of the grid."""
    landscape = analysis_for(wildcards, "landscape")
    images = analysis_for(wildcards, "augmented")["images"]
    return images * landscape["rows_per_job"] * landscape["points"]


def passes_of_largest(wildcards):
    """Of the batches of a part, for its largest eigenvalues."""
    hessian = analysis_for(wildcards, "hessian")
    images = hessian["batches_per_job"] * hessian["batch_size"]
    return images * hessian["iterations"] * PASSES_OF_A_PRODUCT


def passes_of_density(wildcards):
    """Of the batches of a part, for its spectral density."""
    hessian = analysis_for(wildcards, "hessian")
    images = hessian["batches_per_job"] * hessian["batch_size"]
    return images * hessian["density_probes"] * hessian["density_steps"] * PASSES_OF_A_PRODUCT
