"""What attention looks at, in numbers: how far, how evenly, and whether queries differ."""

from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Merge,
    bootstrap,
    passes_of_shard,
    selection,
)

# What a pass takes in which attention is read, of one in which it is not.
READING = 1.5


MEASURE = Measure(
    needs="model",
    question="Where networks look",
    figures={
        "attention_distance": FigureKind(
            "distance",
            published=frozenset({"block", "attention_distance_px"}),
            drawn_by="by_head",
            values={
                "value": "distance_renormalized",
                "label": "Distance (pixels)",
                "column": "attention_distance_px",
                "uniform": "distance_uniform",
            },
        ),
        "attention_entropy": FigureKind(
            "entropy",
            drawn_by="by_head",
            values={"value": "entropy", "label": "Entropy (nats)"},
        ),
        "attention_nmi": FigureKind(
            "nmi",
            published=frozenset({"block", "attention_nmi"}),
            drawn_by="by_head",
            values={"value": "nmi", "label": "Mutual information", "column": "attention_nmi"},
        ),
    },
    arguments=selection,
    takes=passes_of_shard(READING),
    shares="shards",
    merge=Merge(bootstrap, at_cut_points=True),
    reads_attention=True,
)
