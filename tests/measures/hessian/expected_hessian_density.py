"""Why the table of the default study is not compared."""

# The nodes inside a spectrum depend on the last digits of each product: its figure is compared.
TABLE = None
