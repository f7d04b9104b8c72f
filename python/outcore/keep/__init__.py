"""What outlasts a run, and whether another run may go on from it."""
