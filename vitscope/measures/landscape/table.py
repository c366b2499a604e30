"""The table `landscape`: one row per model, pair of directions and point of the grid, x fastest.

The trained weights are at 0, 0. The first pair of directions, 0, has the whole grid; others have
the points that claims are about: the middle, its four neighbours and what is about 0.5 away. Scores
after `l2_squared` use the most probable class of a target as the label of its image, as the authors
do. If the logits of an image are not finite, the losses and scores of the point are null.
"""

from vitscope.files.tables import Columns, Table
from vitscope.measures.columns import SCORES

# Scores of targets, which are no labels.
_BY_TARGET: Columns = {
    "accuracy": ("float64", "share of the images whose most probable target is predicted"),
    "top5": ("float64", "share of images whose target is among the five most probable"),
}

TABLE = Table(
    "landscape",
    {
        "model": ("string", "model, as the study names it"),
        "direction": ("int32", "pair of random directions, from 0; figures draw that"),
        "x": ("float64", "steps along the first direction"),
        "y": ("float64", "steps along the second direction"),
        "images": ("int64", "number of augmented images"),
        "clean": ("bool", "whether the images are not augmented"),
        "precision": ("string", "of the forward passes: float32 or bfloat16"),
        "weight_decay": ("float64", "weight of the L2 term; 0 if the loss has none"),
        "loss": ("float64", "nll + weight_decay x l2, as the paper draws it; null as nll"),
        "loss_squared": ("float64", "nll + weight_decay / 2 x l2_squared, whose slope decays"),
        "nll": ("float64", "negative log-likelihood of the targets; null where logits overflow"),
        "l2": ("float64", "sum of the 2-norms of all parameter tensors"),
        "l2_squared": ("float64", "sum of their squares"),
        **{name: _BY_TARGET.get(name, column) for name, column in SCORES.items() if name != "nll"},
    },
)
