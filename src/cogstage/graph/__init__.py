"""Terms counted together; PPMI; the graph on disk; engines (one machine, Spark)."""
