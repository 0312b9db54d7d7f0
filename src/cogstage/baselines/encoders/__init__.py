"""Encoders: from the graph (REPEL: and the training facts) to a vector for each term."""
