"""Documents and coded records in; terms found in them out."""
