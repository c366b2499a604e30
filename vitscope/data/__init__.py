"""Image data: where it comes from, and the artefact that every job reads."""
