"""Reading documents and coded records, and finding terms in them."""
