"""Noise of one frequency, and what it costs in accuracy."""
