"""The co-occurrence graph: counting, PPMI, storage, and engines for one machine and for Spark."""
