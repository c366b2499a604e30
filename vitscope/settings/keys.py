"""The keys of a study and of config.yaml: what each means, what it allows, and its default.

The checks, the defaults, the typed study and config/README.md are made from these declarations. A
field without `setting`, `required` or `optional` is no key: loading the study fills it in.
"""

from dataclasses import dataclass, field
from math import prod
from typing import Any, Literal

from vitscope.files.pairs import pair_name
from vitscope.image_size import height_and_width
from vitscope.settings.section import optional, required, schema_of_section, setting
from vitscope.settings.snapshots import END

Settings = dict[str, Any]
# One number for each channel: grey images have one channel, others three.
Channels = tuple[float, ...]

# Rules for text. Patterns end in `(?!\n)`, since `$` alone would accept a line end.
NAME: Settings = {
    "type": "string",
    # If a name ends in twenty repeats of one part, Snakemake suspects a rule that never ends.
    "pattern": r"^(?!.*(.{1,3})\1{19}$)[A-Za-z0-9][A-Za-z0-9_-]*$(?!\n)",
    "maxLength": 64,
    "title": "letters, digits, '-' and '_', the first a letter or a digit, and no end that repeats",
}
# The characters without width are not all spaces to Python.
ONE_LINE: Settings = {
    "pattern": r"^(?=.*[^\s\u00ad\u200b-\u200d\u2060\ufeff])[^\n\t]*$(?!\n)",
    "maxLength": 200,
    "title": "one line of text that is not blank",
}
# Snakemake would take a name in braces for the wildcard of a rule.
FILE: Settings = {"pattern": r"^[^{}\n]+$(?!\n)", "title": "a path without braces"}
ADDRESS: Settings = {
    "pattern": r"^https?://[^\s@/?#]+([/?#]\S*)?$(?!\n)",
    "title": "an address that begins with https:// or http:// and holds no user name or password",
}
SHA256: Settings = {
    "pattern": r"^[0-9a-f]{64}$(?!\n)",
    "title": "64 hexadecimal digits in lower case",
}
# A side, or a height and a width, of at least 8 pixels; more than 4,096 are a slip.
SIDE: Settings = {"minimum": 8, "maximum": 4096}
SIZE: Settings = {**SIDE, "items": SIDE, "minItems": 2, "maxItems": 2}
ONE_OR_THREE = [{"minItems": count, "maxItems": count} for count in (1, 3)]
MEANS: Settings = {
    "oneOf": ONE_OR_THREE,
    "title": "a list of three numbers, or of one for grey images",
}
DEVIATIONS: Settings = {
    "items": {"exclusiveMinimum": 0},
    "oneOf": ONE_OR_THREE,
    "title": "a list of three numbers above 0, or of one for grey images",
}

# Keys that mean the same for every kind of source that takes them.
SOURCE_KEYS: dict[str, Settings] = {
    "path": {
        "type": "string",
        "pattern": r"^([^{}\n]|\{split\})+$(?!\n)",
        "title": "a path in which nothing but `{split}` is in braces",
        "description": (
            "The file or folder, relative to the working directory or absolute; `{split}` stands "
            "for the name of the split. For CIFAR, an archive that is on this machine already."
        ),
    },
    "url": {
        "type": "string",
        **ADDRESS,
        "description": (
            "The address. For CIFAR, another address of the official archive; it must hold the "
            "same bytes."
        ),
    },
    "sha256": {
        "type": "string",
        **SHA256,
        "description": (
            "The SHA-256 of the file at `url`. If it is left out, the first download writes it to "
            "NAME.lock.yaml beside the study, and later ones must match."
        ),
    },
}


@dataclass(frozen=True, kw_only=True)
class Folders:
    """Folders to write to, in place of the defaults."""

    results: str | None = optional("Intermediates and tables; `results`.", **FILE)
    figures: str | None = optional("Figures; `figures`.", **FILE)
    logs: str | None = optional("One log per job; `logs`.", **FILE)
    benchmarks: str | None = optional("Time and memory of every job; `benchmarks`.", **FILE)


@dataclass(frozen=True, kw_only=True)
class Config:
    """Settings of the workflow that hold for every study and every machine."""

    study: str = setting(
        "mini",
        "Name of the default study; `figures/fig9.pdf` is drawn from it, and `snakemake` without a "
        "target makes all its figures.",
    )
    studies_dir: str | list[str] = setting(
        [],
        "Where further studies are, besides the bundled ones: a folder, a YAML file, or a list of "
        "either.",
        minLength=1,
        items={"minLength": 1},
    )
    keep_latents_gb: float = setting(
        2.0,
        "The most that the latents of a study may take on disk, in GB, to be kept where its "
        "`analysis.keep_latents` is `auto`.",
        minimum=0,
    )
    container: str | None = setting(
        None,
        "The container of all jobs, with `--software-deployment-method apptainer`: a file such as "
        "`vitscope.sif`, or an address; null for none.",
        minLength=1,
    )
    pathvars: Folders = setting({})


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which images of a split are taken."""

    images: int | None = setting(
        None, "How many images of the split to take; null for all.", minimum=1
    )
    seed: int | None = setting(
        0, "Seed of the choice of these images; null takes the first ones.", minimum=0
    )
    stored: bool = setting(
        True,
        "Store the images in one file, all of one size. If not, each is read from its own file in "
        "every epoch of training, and a `crop` is cut from all of it: for the split `train` of a "
        "`folder` of many large images.",
    )


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set; the keys of its `source` depend on the kind of the source."""

    source: Settings = required("Where the images come from.")
    classes: int | None = required(
        "Number of classes; models of this data set have as many outputs. Null if it is unknown: "
        "labels are ignored, and models have no classifier.",
        minimum=2,
    )
    class_names: list[str] | None = setting(
        None,
        "The names of all classes, in the order of the outputs of the network, or a text file of "
        "them, or `imagenet` for those of ImageNet's 1,000; null leaves them as the source has "
        "them, folders in the order of their names.",
        type=["array", "string", "null"],
        items={"minLength": 1},
        minItems=2,
        pattern=FILE["pattern"],
        title="a list of names, the path of a text file with a name a line, or `imagenet`",
    )
    class_index: dict[str, int] | None = setting(
        None,
        "The number of each class of the source, by name and from 0, if they are only some of the "
        "network's classes.",
        minProperties=1,
        additionalProperties={"type": "integer", "minimum": 0},
    )
    image_size: int | list[int] = required(
        "Side of the square that is cut from the centre of each image, in pixels; `[64, 96]` is a "
        "height and a width.",
        **SIZE,
    )
    resize: int | list[int] | str | None = setting(
        None,
        "The shorter side is resized to this before the cut, in proportion. With a height and a "
        "width, as in `[256, 256]`, images have these, whatever their proportion; `cover` resizes "
        "them in proportion until they just cover `image_size`. Null leaves them.",
        **SIZE,
        pattern=r"^cover$(?!\n)",
        title="a side, a height and a width, or `cover`",
    )
    interpolation: Literal["bilinear", "bicubic"] = setting(
        "bicubic", "How pixels are interpolated when images are resized."
    )
    mean: Channels = required(
        "Mean of each channel, of pixels from 0 to 1, which is subtracted. With one number, "
        "images become grey and have one channel.",
        **MEANS,
    )
    std: Channels = required(
        "Deviation of each channel, of pixels from 0 to 1, by which they are divided.", **DEVIATIONS
    )
    corrupted: str | None = setting(
        None,
        "The official corrupted images of this data set, on this machine: CIFAR-10-C or "
        "CIFAR-100-C as an archive or folder, or the folder of ImageNet-C; null corrupts the "
        "images here.",
        pattern=FILE["pattern"],
        title="a path without braces, or null",
    )
    splits: dict[str, Selection] = required(
        "The splits that may be used, by name.", minProperties=1, propertyNames=NAME
    )

    @property
    def channels(self) -> int:
        return len(self.mean)

    @property
    def pixels(self) -> int:
        return prod(height_and_width(self.image_size))

    def bytes_of(self, split: Selection | None) -> int:
        """Return how many bytes an image of a split takes on disk, stored or not."""
        # A stored image takes one byte for each value, an unstored one two numbers of 8 bytes.
        return self.channels * self.pixels if split is None or split.stored else 16


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Where the weights come from; exactly one of the six places."""

    EITHER = ("bundled", "path", "url", "timm", "hf", "made")

    bundled: str | None = optional("A safetensors file of this repository, relative to its root.")
    path: str | None = optional(
        "A checkpoint on this machine, relative to the working directory or absolute.", **FILE
    )
    url: str | None = optional("A checkpoint on the web.", **ADDRESS)
    timm: str | None = optional("A pretrained tag of timm's hub, such as `resnet50.a1_in1k`.")
    hf: str | None = optional(
        "A repository of Hugging Face's hub, as `owner/name` or `owner/name@revision`; its "
        "`model.safetensors` is taken.",
        pattern=r"^[\w-][\w.-]*/[\w-][\w.-]*(@[\w-][\w./-]*)?$(?!\n)",
        title="owner/name or owner/name@revision",
    )
    made: Literal[True] | None = optional(
        "The function of a model of the family `python` returns a network with its weights; for "
        "`checkpoint` alone, and no snapshot. Such a model without a `label` is called `NAME "
        "(untrained?)`."
    )
    sha256: str | None = optional(
        "The SHA-256 of the file. For `url`, `timm` and `hf` it may be left out: the first "
        "download writes it to NAME.lock.yaml beside the study, and later ones must match.",
        **SHA256,
    )
    key: str | None = optional(
        "Which entry of the file holds the weights, such as `teacher`, or `ema.encoder` for an "
        "entry within another; if there is no such entry, the weights whose names begin with it "
        "and a dot. The usual entries are found if it is left out.",
        minLength=1,
    )
    ignore: list[str] | None = optional(
        "Patterns of names in the file that are left out, such as `decoder.*`; each must match "
        "one. A `*` stands for anything, dots too.",
        items={"minLength": 1},
        minItems=1,
        uniqueItems=True,
    )


@dataclass(frozen=True, kw_only=True)
class History:
    """A table that the rule train_model wrote.

    The table has the learning trajectory if the recipe has `trajectory`. Without a table, the
    trajectory goes through `snapshots`.
    """

    EITHER = ("bundled", "path")

    bundled: str | None = optional("A table of this repository, relative to its root.")
    path: str | None = optional(
        "A table on this machine, relative to the working directory or absolute.", **FILE
    )


@dataclass(frozen=True, kw_only=True)
class Point:
    """A module where a network is read."""

    module: str = required(
        "Name of a module, as in `named_modules()`, or a pattern of names: `*` stands for any part "
        "between two dots, `**` for any parts.",
        minLength=1,
    )
    at: Literal["input", "output"] = setting(
        "output", "Whether the first tensor that it is given is read, or the first that it returns."
    )
    inside: bool = setting(
        False,
        "Whether values may be read that are not the whole stream: within a branch, or one of "
        "several streams.",
    )


@dataclass(frozen=True, kw_only=True)
class PassChange:
    """A part of a network, and what takes its place in each pass."""

    at: int | str = required("The name or the index of a cut point.")
    how: Literal["zero", "mean", "resample", "scale"] = setting(
        "zero",
        "What takes the place of the values: zeros, their mean over the images that are measured, "
        "those of another image, or the values times `factor`.",
    )
    of: Literal["branch", "stream", "heads"] = setting(
        "branch",
        "What is changed: the branch that joins the stream at the cut point, the stream there, or "
        "the outputs of `heads` of the attention before it.",
    )
    heads: list[int] | None = optional("The heads that are changed, from 0.", minItems=1)
    tokens: Literal["class", "registers", "positions"] | None = optional(
        "The tokens of the branch or stream that are changed; all if left out."
    )
    channels: list[int] | None = optional(
        "The channels of the branch or stream that are changed, from 0; all if left out.",
        minItems=1,
    )
    factor: float | None = optional("What `scale` multiplies by.")


@dataclass(frozen=True, kw_only=True)
class Pretraining:
    """How a model was pretrained and others were not, for the claims that compare them."""

    by: Literal["more_images", "distillation", "self_supervision", "augmentation"] = required(
        "On a larger data set first, by a convolutional teacher, without labels, or with stronger "
        "augmentation."
    )
    unlike: list[str] = required("The models that were not, and are else alike.", minItems=1)


@dataclass(frozen=True, kw_only=True)
class Model:
    """A model; `checkpoint`, `history` and each of `snapshots` say where a file comes from.

    A model without `classes` has no classifier. `epoch` is the number of epochs after which its
    weights were taken, for figures by epoch.
    """

    label: str = optional("How figures call the model; its name if left out.", **ONE_LINE)
    family: str = required("How the model is built; its `arch` is listed below.")
    arch: Settings = setting({}, "What the family needs to build the model; see `arch` below.")
    data: str = required("The data set that the model is measured on.")
    classes: int | None = optional(
        "Number of outputs of the network; the data set's if left out. Null for a network without "
        "a classifier: a classifier in its checkpoint is left out, and figures that need classes "
        "are refused.",
        type=["integer", "null"],
        minimum=2,
    )
    output: int | str | None = optional(
        "Which tensor the logits are, where the network returns several: its name, as "
        "`pooler_output`, or its number from 0.",
    )
    mean: Channels = optional(
        "Mean of the pixels that the model expects; the data set's if left out.", **MEANS
    )
    std: Channels = optional(
        "Deviation of the pixels that the model expects; the data set's if left out.", **DEVIATIONS
    )
    checkpoint: Settings = required(**schema_of_section(Checkpoint))
    training: Settings = setting(
        {}, "Settings of the study's `training` that differ for this model."
    )
    snapshots: dict[str, Settings] = setting(
        {},
        "Weights from the training of the model by name, from first to last, each like "
        "`checkpoint`; `end` is `checkpoint` itself, and not listed.",
        propertyNames=NAME,
        additionalProperties=schema_of_section(Checkpoint),
    )
    history: Settings | None = optional(**schema_of_section(History))
    pretraining: Pretraining | None = optional()
    averages: str | None = optional(
        "The model of which this one averages neighbouring pixels, samples or members, and which "
        "is else alike, for the claims that compare both.",
    )
    control: bool = setting(
        False,
        "Whether the model is a control: claims compare it with the models that differ from it in "
        "one thing, and count it nowhere else.",
    )
    points: list[Settings] | None = optional(
        "Where to read the network, in place of the cut points that are found in it: modules, "
        "each once. They are sorted in the order in which the network computes them.",
        minItems=1,
        items=schema_of_section(Point),
    )
    interventions: list[Settings] = setting(
        [],
        "Changes in each pass in which the model is measured, one after another, to show beside "
        "the network as it is: in tables of passes, not in those of weights or of the loss. Such a "
        "model is a control.",
        items=schema_of_section(PassChange),
    )
    norms: Literal["after", "before"] = setting(
        "after",
        "Where blocks normalize the sum of stream and branch (post-norm networks): whether the "
        "cut points that are found lie after these norms, or before them, at the sums.",
    )
    epoch: int | None = None

    def moments(self) -> list[str]:
        """Return the names of the snapshots and of the end, from first to last."""
        return [*self.snapshots, END]

    def read_at(self) -> dict[str, Any]:
        """Return where to read the network, in the form that `list_blocks` takes."""
        return {"points": self.points, "norms": self.norms}

    def files(self) -> dict[str, Settings]:
        """Return the entries that name files of the model, by key."""
        history = {} if self.history is None else {"history": self.history}
        snapshots = {f"snapshots.{name}": entry for name, entry in self.snapshots.items()}
        return {"checkpoint": self.checkpoint, **snapshots, **history}


@dataclass(frozen=True, kw_only=True)
class Bootstrap:
    """The 95 % intervals, by bootstrap over images."""

    resamples: int = setting(2000, "Number of resamples.", minimum=100)
    seed: int = setting(0, "Seed of the resamples.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class AugmentedSettings:
    """Augmented training images, drawn once and shared by all measurements of the loss."""

    split: str = setting("train", "The split that the images are of.")
    images: int = setting(
        1024, "How many images are drawn, and augmented as `training` or `loss` says.", minimum=1
    )
    seed: int = setting(0, "Seed of the draw.", minimum=0)


@dataclass(frozen=True, kw_only=True)
class Analysis:
    """How feature maps are measured."""

    split: str = setting("test", "The split of each data set that is measured.")
    images: int = setting(
        256,
        "How many images are measured; fewer where the split is declared with fewer `images`. More "
        "than a folder holds are refused.",
        minimum=1,
    )
    seed: int | None = setting(
        0, "Seed of the choice of images; null takes the first ones.", minimum=0
    )
    shard_size: int = setting(
        128,
        "Images per shard. A shard is one job and one file of latents; results do not depend on "
        "it.",
        minimum=1,
    )
    batch_size: int = setting(64, "Images per forward pass.", minimum=1)
    latents_dtype: Literal["float32", "bfloat16"] = setting(
        "float32",
        "Precision of latents; bfloat16 halves what they take and costs three decimal digits.",
    )
    keep_latents: Literal["auto", True, False] = setting(
        "auto",
        "Write latents and keep them, so that another measure of them runs no network; otherwise "
        "all that figures ask of them is measured in one pass, on a GPU where there is one. With "
        "`auto` they are kept where those of all models that the figures show take no more than "
        "`keep_latents_gb` of the workflow's settings.",
    )
    bootstrap: Bootstrap = setting({})
    augmented: AugmentedSettings = setting({})


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How models are trained by the rule train_model: AdamW, linear warm-up, cosine decay."""

    seed: int = setting(0, "Seed of the weights and of all random numbers.", minimum=0)
    epochs: int = required("Passes over the training split.", minimum=1)
    images: int | None = setting(
        None, "How many images of the training split to train on; null for all.", minimum=1
    )
    batch_size: int = required("Images per step.", minimum=1)
    learning_rate: float = required("Rate after the warm-up.", exclusiveMinimum=0)
    final_learning_rate: float = setting(1.0e-5, "Rate at the end.", minimum=0)
    warmup_epochs: int = setting(1, "Epochs of linear warm-up.", minimum=0)
    weight_decay: float = setting(0.05, "Weight decay of AdamW.", minimum=0)
    label_smoothing: float = setting(0.1, "Label smoothing.", minimum=0, exclusiveMaximum=1)
    mixup: float = setting(0.8, "Alpha of mixup; 0 for none.", minimum=0)
    cutmix: float = setting(1.0, "Alpha of CutMix; 0 for none.", minimum=0)
    mixing_probability: float = setting(
        0.5, "Share of the batches that are mixed.", minimum=0, maximum=1
    )
    randaugment: str | None = setting(
        "rand-m9-n2-mstd1.0",
        "RandAugment, in timm's notation; null for none.",
        pattern=r"^rand(-[a-z]+[0-9.]+)*$(?!\n)",
        title="timm's notation, such as rand-m9-n2-mstd1.0, or null",
    )
    color_jitter: float = setting(
        0,
        "Largest random change of brightness, contrast and saturation, as a share; 0 for none.",
        minimum=0,
    )
    erasing: float = setting(
        0, "Share of the images in which a random rectangle is erased.", minimum=0, maximum=1
    )
    erased: Literal["noise", "zeros"] = setting(
        "noise", "What the rectangle becomes: noise, or zeros, which are the mean pixel."
    )
    crop: list[float] | None = setting(
        None,
        "Cut a random part out of each image, with a share of its area between these two, such as "
        "[0.08, 1], and resize it to the size of the image; null for none.",
        items={"exclusiveMinimum": 0, "maximum": 1},
        minItems=2,
        maxItems=2,
    )
    shift: int = setting(4, "Largest random shift in pixels.", minimum=0)
    border: Literal["reflection", "black"] = setting(
        "reflection", "What a shift brings in from beyond the edge of an image."
    )
    flip: bool = setting(True, "Flip half of the images.")
    clip_gradient: float | None = setting(
        1.0, "Largest norm of a gradient; null for any.", exclusiveMinimum=0
    )
    sam: float | None = setting(
        None,
        "Sharpness-aware minimization: how far uphill, in the norm of all weights, the gradient of "
        "a step is taken, such as 0.05; null for none. A step makes two passes instead of one.",
        exclusiveMinimum=0,
    )
    bfloat16: bool = setting(True, "Train under bfloat16 autocast.")
    compile: Literal["auto", "always", "never"] = setting(
        "auto",
        "Compile the network by `torch.compile`; `auto` does it on a GPU, where the training is "
        "longer than what compiling takes.",
    )
    trajectory: bool = setting(
        False,
        "Record the learning trajectory, for which the weights of all epochs are kept on disk "
        "until the end.",
    )
    snapshots: list[int] = setting(
        [],
        "Epochs after which the weights are kept, each as `epoch_N.safetensors`, besides `init`, "
        "`warmup` and `end`; those after the last epoch are left out.",
        items={"minimum": 0},
        uniqueItems=True,
    )
    snapshot_dtype: Literal["float32", "float16"] = setting(
        "float32", "Precision of the weights in the snapshots."
    )


# The keys of the recipe that decide augmentation, with values that leave images as they are.
NOT_AUGMENTED: Settings = {
    "batch_size": 64,
    "label_smoothing": 0,
    "mixup": 0,
    "cutmix": 0,
    "mixing_probability": 1.0,
    "randaugment": None,
    "color_jitter": 0,
    "erasing": 0,
    "erased": "noise",
    "crop": None,
    "shift": 0,
    "border": "reflection",
    "flip": False,
}


@dataclass(frozen=True, kw_only=True)
class LossSettings:
    """How the loss of networks that were trained elsewhere is measured.

    Landscapes, Hessians and the fit use this section; without it, the loss is measured as the
    recipe says.
    """

    weight_decay: float = required("Weight decay of their training; 0 for none.", minimum=0)
    augment: Settings | str = setting(
        "none",
        "How images are augmented: `none`, or keys of `training`; what they leave out is not done.",
        pattern=r"^none$(?!\n)",
        title="`none`, or keys and their values",
        additionalProperties=False,
        properties={
            key: schema_of_section(Recipe)["properties"][key] | {"default": default}
            for key, default in NOT_AUGMENTED.items()
        },
    )


@dataclass(frozen=True, kw_only=True)
class Style:
    """How figures look, for the page that they are printed on.

    A change draws figures anew, and measures nothing. Figures that are a whole page, the verdicts
    and the page of a network, keep their width and font sizes.
    """

    width: float = setting(
        5.5,
        "Inches that a figure is wide at most, and its panels flow to: 3.25 is one column, 5.5 the "
        "text of ICLR and NeurIPS, 6.75 of ICML, 6.875 of CVPR. A figure of one panel has 3.25.",
        minimum=3,
        maximum=12,
    )
    font_size: float = setting(
        7.0,
        "Points of text, with which titles, labels and ticks grow and, from 7 on, lines and marks; "
        "nothing is below 6, but exponents at 5. Slides take 10 or more, and a width of 10.",
        minimum=5,
        maximum=12,
    )
    background: Literal["light", "dark"] = setting(
        "light",
        "`dark` is for slides: white becomes almost black, and text, axes and gray their "
        "counterparts; colours of models and maps stay.",
    )
    font: str = setting("DejaVu Sans", "A family of fonts of this machine.", minLength=1)
    palette: dict[str, str] = setting(
        {},
        "The colour of families, such as `{vit: '#d62728'}`, in place of vitscope's.",
        additionalProperties={
            "type": "string",
            "pattern": r"^#[0-9a-fA-F]{6}$(?!\n)",
            "title": "a colour as '#1f77b4'",
        },
    )


@dataclass(frozen=True, kw_only=True)
class PublishedSettings:
    """Points of the published figure, drawn over the measured ones."""

    file: str = required("A file of vitscope/claims/published_points/.")
    same_models: bool = setting(
        False,
        "Whether the study measures the published checkpoints themselves, on the images and with "
        "the mean and deviation of the published figure, so that values can be compared; "
        "otherwise only shapes can.",
    )
    series: dict[str, str] = setting({}, "The published series of each model, of some or all.")
    others: list[str] = setting(
        [],
        "Further series, of none of the models, as `people`, for figures of the kind "
        "`shape_texture`.",
        items={"minLength": 1},
    )


@dataclass(frozen=True, kw_only=True)
class OwnMeasure:
    """A measure of your own, by its name, which is also the kind of its figures."""

    file: str = required(
        "A file of Python with a function `measure`, relative to the study or absolute; "
        "docs/own-measures.md says what it may hold.",
        **FILE,
    )
    keywords: dict[str, Any] = setting({}, "Keywords of this function.")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: its kind, its models, and what else it shows.

    `pairs` or `triples` are the models that it shows together, if its kind shows such; `options`
    are the keys that only its kind has. Fields without a description are filled in on loading: the
    measure of the kind, the tables that the figure is drawn from, the measures among these tables,
    and whether the figure shows snapshots, or models by epoch.
    """

    EITHER = ("models", "pairs", "triples")

    kind: str = required("What the figure shows; docs/figures.md lists the kinds.")
    models: list[str] = optional(
        "The models of the figure, one panel each, in this order.", minItems=1, uniqueItems=True
    )
    pairs: list[tuple[str, str]] = optional(
        "In place of `models`, for figures of the kinds `cka_between`, of models that are measured "
        "on the same images, whatever their size, with the first model across, and "
        "`interpolation`, of models of one shape: pairs of models, with a panel each.",
        minItems=1,
        uniqueItems=True,
        items={"title": "two different models", "uniqueItems": True},
    )
    triples: list[tuple[str, str, str]] = optional(
        "In place of `models`, for figures of the kind `plane`: triples of models of one shape, "
        "with a row of panels each.",
        minItems=1,
        uniqueItems=True,
        items={"title": "three different models", "uniqueItems": True},
    )
    snapshots: list[str] | None = optional(
        "For figures of kinds of the Hessian, the snapshots of every model that "
        "they show, in this order; `end` is the trained model, and shown alone if this is left "
        "out. For figures by epoch, those that they show, in the order of epochs; all if left out.",
        minItems=1,
        uniqueItems=True,
    )
    published: PublishedSettings | None = optional()
    measure: str = ""
    tables: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    of_snapshots: bool = False
    by_epoch: bool = False
    options: Settings = field(default_factory=dict)

    @property
    def groups(self) -> list[tuple[str, ...]]:
        """The pairs or triples of models that the figure shows; empty if it shows models."""
        return [*self.pairs, *self.triples]

    @property
    def named_by(self) -> str:
        """The key that names what the figure shows: models, pairs or triples."""
        return next(key for key in reversed(self.EITHER) if getattr(self, key))

    def subjects(self, table: str) -> list[str]:
        """Return the names of the models, pairs or triples that the figure shows from a table."""
        of_groups = self.groups and table == self.measure
        return [*map(pair_name, self.groups)] if of_groups else self.models

    def shown_snapshots(self) -> list[str]:
        """Return the snapshots that the figure shows, in its order; [] if its kind shows none."""
        return list(self.snapshots or [END]) if self.of_snapshots else []


@dataclass(frozen=True, kw_only=True)
class VideoSource:
    """Where the frames come from; exactly one of the three places."""

    EITHER = ("path", "url", "generated")

    path: str | None = optional(
        "A folder of frames, in the order of the numbers in their names; an animated GIF, WebP or "
        "PNG; or any video, where ffmpeg is on the PATH. Relative to the working directory, or "
        "absolute.",
        **FILE,
    )
    url: str | None = optional("The address of such a picture or video on the web.", **ADDRESS)
    sha256: str | None = optional(SOURCE_KEYS["sha256"]["description"], **SHA256)
    generated: Literal["shapes32"] | None = optional(
        "A short generated video: the shape of an image of `shapes32` moves around."
    )


@dataclass(frozen=True, kw_only=True)
class VideoSettings:
    """A video beside what a network makes of it: the model, the frames, and what is shown."""

    model: str = required("The model that sees the video.")
    source: Settings = required(**schema_of_section(VideoSource))
    shows: Literal["heads", "rollout", "components"] = setting(
        "heads",
        "What stands beside the video: a map of every head of one attention; the attention "
        "rollout, alone and over the video; or tokens in the colours of their principal "
        "components, with the settings of `analysis.token_pca`.",
    )
    block: str | int | None = setting(
        None,
        "For `heads`, whose attention: the name of a module, or a number from 0 on, from the end "
        "if below 0; null for the last that has queries with a place.",
    )
    heads: list[int] | None = setting(
        None,
        "For `heads`, which of them, from 0 on, in this order; null for all.",
        items={"minimum": 0},
        minItems=1,
        uniqueItems=True,
    )
    query: list[float] | None = setting(
        None,
        "For `heads`, whose attention, as [row, column] in pixels of the image that the network "
        "takes; null for the class token, or the mean of all queries where there is none.",
        items={"minimum": 0},
        minItems=2,
        maxItems=2,
    )
    brightest: float | None = setting(
        None,
        "For `heads`, the attention in percent that has the brightest colour, in all frames; null "
        "for the largest of the first frame.",
        exclusiveMinimum=0,
        maximum=100,
    )
    fusion: Literal["mean", "max", "min"] = setting(
        "mean", "For `rollout`, how the heads of an attention are combined."
    )
    frames: int | None = setting(
        None, "How many frames are shown, the first ones; null for all.", minimum=1
    )
    frames_per_second: float | None = setting(
        None,
        "The number of frames per second; null for the timing of the video, or 10 if it has none.",
        exclusiveMinimum=0,
        maximum=240,
    )
    lossless: bool = setting(False, "Whether a WebP keeps every pixel exactly, and is larger.")


@dataclass(frozen=True, kw_only=True)
class StepWeights:
    """Weights of networks that were trained before; if left out, the networks are trained."""

    bundled: str = required(
        "A folder of this repository, relative to its root, with the weights of each step as "
        "`step_N.safetensors`."
    )


@dataclass(frozen=True, kw_only=True)
class BuildUp:
    """How AlterNet is built up from a baseline; `weights` holds weights of steps trained before."""

    baseline: str = required(
        "A model of the family `resnet`, or `alternet` without attention: its `arch` gives the "
        "blocks and their width, its data set the images for training. Its weights are not used."
    )
    heads: list[int] = setting(
        [3, 6, 12, 24],
        "Heads of the MSAs of each stage.",
        items={"minimum": 1},
        minItems=4,
        maxItems=4,
    )
    head_dim: int = setting(64, "Channels of a head.", minimum=1)
    window: int = setting(4, "Side of the windows of attention.", minimum=1)
    steps: int = setting(20, "How many networks are tried at most, besides it.", minimum=1)
    patience: int = setting(
        1,
        "How many MSAs in a row may fail to improve the network before the stage before is next: "
        "1 is the rule of the paper, 2 gives all points of its figure.",
        minimum=1,
    )
    training: Settings = setting(
        {}, "Settings of the recipe of the baseline that differ for all networks of the build-up."
    )
    weights: Settings | None = optional(**schema_of_section(StepWeights))
    published: str | None = optional(
        "A file of vitscope/claims/published_points/ with accuracies by number of MSAs, such as "
        "`fig12a.csv`, that are drawn beside the measured ones."
    )
