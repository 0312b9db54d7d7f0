"""``cogstage publish``."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import say
from cogstage.cli.options import output_option


def publish(
    model: Path = options.MODEL,
    out: Path = options.out("Output file.", Path("explorer.html"), "FILE"),
    title: str = output_option("", "--title", help="Title shown to readers.", metavar="TEXT"),
    require_private: bool = options.REQUIRE_PRIVATE,
) -> None:
    """Write a model as one HTML file that answers questions about pairs without a server or a network.

    Example: cogstage publish model --out explorer.html
    """
    from cogstage.estimator import CogStage
    from cogstage.web.privacy import privacy_warning
    from cogstage.web.publish import publish as write

    loaded = CogStage.load(model)
    if warning := privacy_warning(loaded.privacy, require_private, False):
        say(warning)
    size = write(loaded, out, title)
    typer.echo(f"wrote {out} ({size / 1e6:.1f} MB)", err=True)
