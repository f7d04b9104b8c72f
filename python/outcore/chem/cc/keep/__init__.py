"""What a stopped run of coupled cluster leaves, and what another goes on from."""
