"""What attention looks at, in numbers: how far, how evenly, and whether queries differ."""

from dataclasses import dataclass

from vitscope.measures.attention.table import PART, TABLE
from vitscope.measures.measure import (
    FigureKind,
    Measure,
    Merge,
    bootstrap,
    passes_of_shard,
    selection,
)
from vitscope.settings.section import optional

# What a pass takes in which attention is read, of one in which it is not.
READING = 1.5


@dataclass(frozen=True)
class Options:
    """How distances are drawn."""

    renormalized: bool | None = optional(
        "For `attention_distance`: true, as if this is left out, where the attention to tokens "
        "without a place, such as the class token, is left out and the rest normalized again; "
        "false where the distance is multiplied with the attention as it is, so that attention to "
        "these tokens makes it shorter."
    )


ATTENTION = Measure(
    needs="model",
    table=TABLE,
    part=PART,
    question="Where networks look",
    figures={
        "attention_distance": FigureKind(
            published=frozenset({"block", "attention_distance_px"}),
            options=Options,
        ),
        "attention_entropy": FigureKind(),
        "attention_nmi": FigureKind(
            published=frozenset({"block", "attention_nmi"}),
            drawn_by="by_head",
            values={
                "value": "nmi",
                "label": "Normalized mutual\ninformation",
                "column": "attention_nmi",
            },
        ),
    },
    arguments=selection,
    takes=passes_of_shard(READING),
    shares="shards",
    merge=Merge(bootstrap, at_cut_points=True),
    reads_attention=True,
)
