"""A measure of vitscope: the share of small values in feature maps, by depth."""
