"""Fourier: amplitudes along the half-diagonal, and the whole spectrum, per shard, then merged."""
