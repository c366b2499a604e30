"""Why the table of the default study is not compared."""

# A bin may hold a single image: its figure is compared, and in classification the sum of the bins.
TABLE = None
