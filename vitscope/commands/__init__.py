"""The subcommands of `vitscope`, one module each; they call Snakemake as a user would."""
