"""Measures of vitscope: the hidden attention of selective scans."""
