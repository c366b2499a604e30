"""Lesions: the accuracy without one residual branch."""
