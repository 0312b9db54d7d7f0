"""The expert study: protocol, storage, agreement and report."""
