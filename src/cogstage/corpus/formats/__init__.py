"""One file per format: a module here that defines a Reader with a ``format`` is all that a new one needs."""
