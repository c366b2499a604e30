"""The subcommands of `vitscope`, a module each: they call Snakemake as a user does."""
