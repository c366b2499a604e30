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
# its layers are about that. At the peak of a pass; with what is kept for lesions; kept for one pass
# back; kept for two, in a product with the Hessian.
MAPS_OF_PASS = 800
MAPS_OF_LESIONS = 1_800
MAPS_OF_TRAINING = 12_000
MAPS_OF_PRODUCT = 33_000

# Minutes of everything but the work itself: waiting for files, starting, reading.
LEAST_MINUTES = 15
# How many times as long as on the machine of docs/scale.md a job may take. A core of that machine
# makes so many products in a second, in float32.
SAFETY = 4
PRODUCTS_PER_SECOND = 25e9
BYTES_PER_WEIGHT = 4
# A weight is multiplied once for each position of its layer. How many pixels of the image one
# position stands for, in the mean over the weights, over the square of the first stride; and that
# stride where neither `arch` nor the name of the model tells it. Counted by torch's FlopCounterMode.
POSITIONS = {
    "resnet": (18.7, 1),
    "alternet": (18.6, 1),
    "timm_resnet": (19.6, 4),
    "convnext": (20.1, 4),
    "swin": (19.7, 4),
    "pit": (5.0, 8),
    "vit": (0.83, 16),
    "mixer": (0.93, 16),
}
# What a pass takes that may be in bfloat16, of one in float32; measured are 0.34 to 0.67.
SHARE_OF_BFLOAT16 = 0.5
# What a pass without one unit takes, of a whole one, since what lies before the unit is not computed
# again; measured are 0.2 to 0.45.
SHARE_OF_LESION = 0.3
# What a product with the Hessian takes, in forward passes.
PASSES_OF_A_PRODUCT = 6
# Seconds to train on one image of 32x32 pixels once.
SECONDS_OF_TRAINING = 0.01
# The least of vectors that the largest eigenvalues take: LARGEST_BASIS of vitscope.hessian.lanczos.
LEAST_VECTORS = 64
# Seconds for a million pixels. Of the slowest corruption, glass_blur at 224 pixels; of a photograph
# of 3 million pixels that is cut to 224x224, those of ImageNet take a tenth; of RandAugment at 32.
SECONDS_OF_CORRUPTION = 0.6
SECONDS_OF_BUILDING = 0.6
SECONDS_OF_AUGMENTING = 0.11
# Where neither the study nor a file tells how many images a source has: as in ImageNet's validation.
UNCOUNTED_IMAGES = 50_000


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


def memory_of_lesions(wildcards, input, attempt):
    """Of a job that keeps what modules return until no lesion needs it."""
    images = analysis_for(wildcards)["batch_size"]
    return memory_of_model(bytes_of_weights(input), MAPS_OF_LESIONS, images, attempt)


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


def minutes_of_work(seconds, attempt):
    """Of a job that would work so long on the machine that was measured."""
    return growing(LEAST_MINUTES + SAFETY * seconds / 60, attempt)


def minutes_of_latents(wildcards, attempt):
    """Of a job that reads a shard of latents: that takes seconds."""
    return minutes_of_work(0, attempt)


def minutes_of_building(wildcards, attempt):
    """Of a job that reads the images of a split, and cuts them to their size."""
    dataset = dataset_of(wildcards)
    images = dataset["splits"][wildcards.split]["images"] or UNCOUNTED_IMAGES
    seconds = megapixels(images, dataset["image_size"]) * SECONDS_OF_BUILDING
    return minutes_of_work(seconds, attempt)


def minutes_of_corrupting(wildcards, input, attempt):
    """Of a job that corrupts images, at all severities."""
    settings, size = analysis_for(wildcards, "robustness"), dataset_of(wildcards)["image_size"]
    images = images_there(input.images, size, settings["images"]) * len(settings["severities"])
    return minutes_of_work(megapixels(images, size) * SECONDS_OF_CORRUPTION, attempt)


def minutes_of_augmenting(section):
    """Of a job that augments as many images as a section of the analysis says."""

    def minutes(wildcards, attempt):
        size = network_of(wildcards)["image_size"]
        images = analysis_for(wildcards, section)["images"]
        return minutes_of_work(megapixels(images, size) * SECONDS_OF_AUGMENTING, attempt)

    return minutes


def minutes_of(passes):
    """Of a job that runs so many images through a model."""

    def minutes(wildcards, input, attempt):
        products = passes(wildcards, input) * products_of_pass(wildcards, input)
        return minutes_of_work(products / PRODUCTS_PER_SECOND, attempt)

    return minutes


def minutes_of_training(wildcards, input, attempt):
    """Of a job that trains a model."""
    recipe, size = recipe_of(wildcards), network_of(wildcards)["image_size"]
    images = images_there(input.train, size, recipe["images"])
    seconds = recipe["epochs"] * images * (size / 32) ** 2 * SECONDS_OF_TRAINING
    return growing(LEAST_MINUTES + seconds / 60, attempt)


# What there is to do


def megapixels(images, size):
    """Millions of pixels of so many images."""
    return images * size**2 / 1e6


def images_there(split, size, wanted):
    """How many images of a split are wanted, of those that are there: a byte per colour and pixel."""
    there = os.path.getsize(split) // (3 * size**2)
    return min(wanted or there, there)


def products_of_pass(wildcards, input):
    """The products that a model makes of one image."""
    network = network_of(wildcards)
    pixels, stride = POSITIONS.get(network["family"], POSITIONS["vit"])
    arch = network["arch"]
    named = re.search(r"patch(\d+)", arch.get("name", ""))
    stride = arch.get("stride") or arch.get("patch_size") or (int(named[1]) if named else stride)
    positions = network["image_size"] ** 2 / (pixels * stride**2)
    return positions * bytes_of_weights(input) / BYTES_PER_WEIGHT


def block_table(blocks):
    """A table of blocks, which is read once, and again when it has changed."""
    return read_blocks(blocks, os.stat(blocks).st_mtime_ns)


@cache
def read_blocks(blocks, written):
    """A table of blocks as it was written at that time."""
    # Imported here: most runs ask for none, and pandas takes long to import.
    from vitscope.tables import read_table

    return clear(read_table, "blocks", blocks)


# Images that a job runs through a model, each as often as it does


def passes_of_shard(wildcards, input=None):
    """Of a shard of latents."""
    return min(analysis_for(wildcards)["shard_size"], study_of(wildcards).images(wildcards.model))


def passes_of_split(wildcards, input, wanted):
    """Of the images of a split that are wanted."""
    return images_there(input.images, network_of(wildcards)["image_size"], wanted)


def passes_of_prediction(wildcards, input):
    """Of the images of a split that are classified."""
    return passes_of_split(wildcards, input, classified(wildcards)["wanted"])


def passes_of_fit(wildcards, input):
    """Of augmented images."""
    return analysis_for(wildcards, "fit")["images"]


def passes_of_noise(wildcards, input):
    """Of images without noise, and under noise of every frequency."""
    noise = analysis_for(wildcards, "frequency_noise")
    views = 1 + len(noise["frequencies"]) * noise["seeds"]
    return passes_of_split(wildcards, input, noise["images"]) * views


def passes_of_lesions(wildcards, input):
    """Of images through the model, and without each of its units: at most the cut points."""
    images = passes_of_split(wildcards, input, analysis_for(wildcards, "lesion")["images"])
    return images * (1 + SHARE_OF_LESION * len(block_table(input.blocks)))


def passes_of_robustness(wildcards, input):
    """Of images under the corruptions of a part, and without."""
    settings = analysis_for(wildcards, "robustness")
    views = 1 + settings["corruptions_per_job"] * len(settings["severities"])
    return passes_of_split(wildcards, input, settings["images"]) * views


def passes_of_landscape(wildcards, input):
    """Of augmented images at the points of a part of the grid."""
    landscape = analysis_for(wildcards, "landscape")
    images = analysis_for(wildcards, "augmented")["images"]
    share = 1 if landscape["precision"] == "float32" else SHARE_OF_BFLOAT16
    return images * landscape["rows_per_job"] * landscape["points"] * share


def passes_of_largest(wildcards, input):
    """Of the batches of a part, for its largest eigenvalues."""
    hessian = analysis_for(wildcards, "hessian")
    images = hessian["batches_per_job"] * hessian["batch_size"]
    return images * hessian["iterations"] * PASSES_OF_A_PRODUCT


def passes_of_density(wildcards, input):
    """Of the batches of a part, for its spectral density."""
    hessian = analysis_for(wildcards, "hessian")
    images = hessian["batches_per_job"] * hessian["batch_size"]
    return images * hessian["density_probes"] * hessian["density_steps"] * PASSES_OF_A_PRODUCT
