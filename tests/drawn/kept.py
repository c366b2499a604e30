"""Networks that failed once, each reduced to the smallest: every run repeats them."""

KEPT: tuple[str, ...] = ()
