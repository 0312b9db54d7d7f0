"""The expert evaluation: protocol, storage, agreement, report."""
