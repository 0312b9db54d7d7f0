"""Input formats, one file per format. A new format is a module that defines a Reader with a ``format``."""
