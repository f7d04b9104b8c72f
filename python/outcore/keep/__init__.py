"""Files that outlast a run: checkpoints, kept stages, and checks whether another run may continue from them."""
