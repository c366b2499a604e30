"""Image data: its sources, and the file of each split that jobs read."""
