"""What others wrote, against the readers: attacks, bombs, damage, names and secrets."""
