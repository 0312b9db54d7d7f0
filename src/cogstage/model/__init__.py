"""The three stages, one file each; their wiring, training and checkpoints."""
