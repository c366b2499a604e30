"""How alike the tokens of an image are: the mean cosine similarity of all pairs."""

from vitscope.measures.measure import FigureKind, Measure, mean_over_images

MEASURE = Measure(
    needs="latents",
    figures={
        "token_similarity": FigureKind(
            drawn_by="by_depth",
            values={
                "value": "similarity",
                "label": "Cosine similarity of tokens",
                "from_zero": False,
            },
        )
    },
    merge=mean_over_images("similarity"),
    seconds_per_gb=0.6,
)
