"""CKA: the similarity of the feature maps of all pairs of cut points."""
