"""CKA between two networks: the similarity of each cut point of one with each of the other."""

from vitscope.measures.cka.measure import SECONDS_PER_GB, Settings, batch_size, refuse_batches
from vitscope.measures.measure import FigureKind, Measure

# In batches as of one network.
MEASURE = Measure(
    needs="latents",
    figures={"cka_between": FigureKind(beside=("blocks",))},
    settings_of=("cka", Settings),
    arguments=batch_size,
    of_pairs=True,
    seconds_per_gb=SECONDS_PER_GB,
    refuse=refuse_batches,
)
