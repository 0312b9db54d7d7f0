"""The embedded data set: counts and facts derived from PubMed records of 1977-79."""
