"""Classification: predictions for every image, and what they say of a model."""
