"""A measure of vitscope: tokens by their first principal components, as colours."""
