"""``python -m cogstage`` is the same as ``cogstage``."""

from cogstage.cli.main import run

if __name__ == "__main__":
    run()
