"""Robustness: accuracy and calibration on corrupted images."""
