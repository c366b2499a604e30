"""How far tables of the default study may differ from the expected ones; None: not compared."""

from tests.helpers.expected import Expected

# Of ten neighbours of 252 images, five, which are as near as others; p of an image more or less.
_OF_NEIGHBOURS = {"mutual": 2e-3, "mutual_null": 2e-3, "mutual_calibrated": 2e-3, "mutual_p": 0.2}
# In percent, two of 200 images.
_OF_TWO = {"error": 1.01, "error_excess": 1.01}

TABLES: dict[str, Expected | None] = {
    "attention": Expected(["model", "attention", "head"], 1e-4, 1e-6),
    "attention_low_pass": Expected(["model", "attention", "head"], 1e-4, 1e-5),
    "attention_maps": Expected(
        ["model", "image", "shows", "query_row", "query_column", "head"],
        1e-4,
        without=("weights", "picture"),
    ),
    "attention_rollout": Expected(
        ["model", "image"], 1e-4, without=("rollout", "picture", "whole")
    ),
    # Of images that do not come with the package.
    "beside_people": None,
    "cka": Expected(
        ["model", "index", "other_index"], 1e-3, 1e-4, without=("cka_without",), own=_OF_NEIGHBOURS
    ),
    "cka_between": Expected(
        ["model", "other_model", "index", "other_index"], 1e-3, 1e-4, own=_OF_NEIGHBOURS
    ),
    "class_maps": Expected(["model", "image", "method"], 1e-4, without=("values", "picture")),
    # Of 2,000 images: four.
    "classification": Expected(["model"], 1e-3, 2e-3),
    # Of 200 images at two severities: two.
    "corruption_error": Expected(["model", "corruption"], 1e-3, 7e-3),
    # Eigenvalues have a residual of 0.05, which is squared in their error; traces are sums of terms
    # that cancel. A ReLU whose input is zero but for rounding is open on one processor and closed
    # on another: in one of 12 batches that moves a block's trace by 0.74, the network's being 208.
    "curvature": Expected(
        ["model", "snapshot", "batch", "of", "index"], 0.02, 1.0, ("residual", "converged")
    ),
    # The order of pixels whose values are nearly equal is open, and with it what is deleted.
    "faithfulness": Expected(["model", "method", "change", "share"], 0.02, 0.005),
    "feature_variance": Expected(["model", "index"], 1e-4),
    "fit": Expected(["model", "metric"], 1e-3, 0.1),
    "fourier": Expected(["model", "index", "measure", "frequency"], 1e-4, 1e-4),
    # In percentage points, of 500 images: two.
    "frequency_noise": Expected(["model", "frequency"], 0.01, 0.4),
    # Eigenvalues have a residual of 1e-3; how many steps they took is the processor's affair.
    "hessian": Expected(
        ["model", "snapshot", "images", "batch", "rank"],
        0.01,
        0.01,
        ("residual", "iterations"),
    ),
    # The nodes inside a spectrum depend on the last digits of each product: its figure is compared.
    "hessian_density": None,
    "loss_terms": None,
    "interpolation": Expected(["model", "other_model", "share", "reset"], 5e-3, 5e-3, own=_OF_TWO),
    # Of 100 images: two.
    "plane": Expected(
        ["model", "other_model", "third_model", "network", "reset"],
        5e-3,
        5e-3,
        own={"error": 2.01},
    ),
    # Of 128 images: two; far from the trained weights the NLL is large, and the rest is not.
    "landscape": Expected(["model", "direction", "x", "y"], 5e-3, 0.016),
    "learning_curves": Expected(["model", "epoch"], 1e-12),
    # In percentage points, of 1,000 images: three.
    "lesion": Expected(["model", "index"], 0.01, 0.3),
    "mean_token": Expected(["model", "index"], 1e-4),
    # Of 200 images in three draws: two decisions, or as much of the accuracy that is kept.
    "normalized_variance": Expected(["model", "index"], 1e-4),
    "occlusion": Expected(["model", "change", "grid", "dropped"], 0.01, 0.0034),
    "class_separation": Expected(["model", "index", "of"], 1e-3, 1e-4),
    "patch_filters": Expected(["model", "of", "number"], 1e-4, 1e-6, without=("values",)),
    "position_bias": Expected(["model", "layer", "head"], 1e-4, 1e-6, without=("values",)),
    "position_similarity": Expected(
        ["model", "row", "column"], 1e-4, 1e-6, without=("products", "cosines")
    ),
    # An image whose two best classes are as good may be read as either.
    "probe": Expected(["model", "index", "of", "by"], 1e-4, 0.02, without=("penalty",)),
    "probe_tokens": Expected(["model", "index", "target"], 1e-3, 1e-3, without=("penalty",)),
    # Areas are those of one of a few squares: another one is off by more than any rounding.
    "receptive_field": Expected(["model", "index"], 1e-4, without=("contributions",)),
    # A bin may hold a single image: the figure is compared, and the sum of bins in classification.
    "reliability": None,
    # Of 200 images: three.
    "robustness": Expected(["model", "corruption", "severity"], 0.01, 0.016),
    # Of a class of 200 images or more: two.
    "shape_texture": Expected(["model", "class_name"], 0.01, 0.01),
    "singular_values": Expected(["model", "index", "of"], 1e-4, without=("log_ratios",)),
    "skip_ratio": Expected(["model", "index", "tokens"], 1e-3),
    "spatial_share": Expected(["model", "index"], 1e-4),
    "spectrum": Expected(["model", "index", "band"], 1e-4, 1e-6),
    "token_pca": Expected(
        ["model", "image"], 1e-3, 1e-3, without=("first", "components", "explained", "picture")
    ),
    "token_norms": Expected(["model", "index"], 1e-4, without=("positions",)),
    "token_similarity": Expected(["model", "index"], 1e-4),
    "trajectory": Expected(["model", "moment"], 1e-5),
}
