"""The commands of a running study: serve, invite, close, reopen, admin-password, upgrade."""

from __future__ import annotations

import logging
import sys
from contextlib import closing
from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json
from cogstage.cli.options import argument, model_option, output_option, run_option
from cogstage.errors import UsageError

COMMAND_LINE = "command line"  # who did something, in the log of a study


def serve(
    study: Path = options.STUDY,
    host: str = options.HOST,
    port: int = options.port(8765),
    health_port: int | None = options.HEALTH_PORT,
    public_url: str | None = options.URL,
    certificate: Path | None = run_option(
        None, "--tls-cert", help="TLS certificate (PEM), to serve https without a proxy.", metavar="FILE"
    ),
    key: Path | None = run_option(None, "--tls-key", help="Private key of the certificate (PEM).", metavar="FILE"),
    secure_cookies: bool | None = run_option(
        None,
        "--secure-cookies/--no-secure-cookies",
        help="Send cookies over https only. Default: on, except on a loopback address.",
    ),
    allowed_hosts: str = options.ALLOWED_HOSTS,
    trusted_proxies: str = options.TRUSTED_PROXIES,
    database: str | None = options.DATABASE,
) -> None:
    """Serve the study to reviewers and the administrator until stopped.

    Example: cogstage study serve study --url https://study.example.org
    """
    from cogstage.study.folder import open_folder
    from cogstage.web.serving import LOOPBACK, Address, listed, on_own_port
    from cogstage.web.study_app import create_study_app
    from cogstage.web.workers import serve as run

    proxies = listed(trusted_proxies)
    address = Address(host, port, public_url, certificate, key, listed(allowed_hosts), proxies, health_port)
    address.check()
    opened = open_folder(study, database)
    secure = address.secure_cookies if secure_cookies is None else secure_cookies
    public = address.url if public_url or address.certificate else None
    typer.echo(f"Study at {address.url}, administrator at {address.url}/admin (stop with Ctrl-C)", err=True)
    if secure and not address.is_https:
        typer.echo(
            "Cookies are sent over https only: set --url and use a TLS proxy, or set --tls-cert and --tls-key",
            err=True,
        )
    # On loopback the server knows its public address; elsewhere only the administrator knows it.
    link_base = address.url if public or address.host in LOOPBACK else None
    if link_base is None:
        typer.echo("The administrator's page cannot create links without --url", err=True)
    app = create_study_app(opened, public, secure, address.access, link_base)
    run(lambda: on_own_port(app, health_port), address, level=logging.INFO)


def invite(
    study: Path = options.STUDY,
    names: list[str] = argument(..., metavar="NAME", help="Names of reviewers, each in quotation marks."),
    days: int = model_option(30, help="Number of days until the links expire.", metavar="N"),
    public_url: str | None = options.URL,
    database: str | None = options.DATABASE,
    as_json: bool = options.as_json(),
) -> None:
    """Create personal links for reviewers; each link is printed once and stored as a hash.

    Example: cogstage study invite study "Dr Ada Lovelace" "Dr John Snow" --url https://study.example.org
    """
    from cogstage.study.folder import open_folder
    from cogstage.web.serving import Address

    if public_url is None:
        raise UsageError(
            "links need the public address of the study; set it with --url, for example --url https://study.example.org"
        )
    Address(public_url=public_url).check()
    with closing(open_folder(study, database)) as opened:
        made = opened.access.invite_all(names, days)
        opened.administrators.record(COMMAND_LINE, f"invited {', '.join(entry.reviewer.name for entry in made)}")
    links = {entry.reviewer.name: f"{public_url.rstrip('/')}/join/{entry.ticket}" for entry in made}
    if as_json:
        print_json(links)
        return
    for name, link in links.items():
        typer.echo(f"{name}\t{link}")


def close_study(study: Path = options.STUDY, database: str | None = options.DATABASE) -> None:
    """Close the study to new answers; saved answers are kept.

    Example: cogstage study close study
    """
    from cogstage.study.folder import open_folder

    with closing(open_folder(study, database)) as opened:
        opened.answers.close()
        opened.administrators.record(COMMAND_LINE, "closed the study")
    typer.echo("The study is closed.")


def reopen(study: Path = options.STUDY, database: str | None = options.DATABASE) -> None:
    """Open a closed study for answers again.

    Example: cogstage study reopen study
    """
    from cogstage.study.folder import open_folder

    with closing(open_folder(study, database)) as opened:
        opened.answers.reopen()
        opened.administrators.record(COMMAND_LINE, "reopened the study")
    typer.echo("The study is open.")


def admin_password(
    study: Path = options.STUDY,
    name: str = model_option("administrator", help="Name of the administrator; a new name adds one.", metavar="NAME"),
    generate: bool = output_option(False, "--generate", help="Generate a random password and print it."),
    two_step: bool | None = model_option(
        None, "--two-step/--one-step", help="Also ask for a code at sign-in, and print the secret for an app; or stop."
    ),
    remove: bool = model_option(False, "--remove", help="Remove this administrator."),
    database: str | None = options.DATABASE,
) -> None:
    """Set an administrator's password, typed or from standard input, and end the administrator's sessions.

    With --two-step, --one-step or --remove, the password stays as it is unless --generate is given.

    Example: cogstage study admin-password study --name "Ada Lovelace" --generate --two-step
    """
    from cogstage.study.folder import open_folder
    from cogstage.study.secret import new_password, time_address

    with closing(open_folder(study, database)) as opened:
        accounts = opened.administrators
        if remove:
            accounts.remove(name)
            accounts.record(COMMAND_LINE, f"removed the administrator {name}")
            typer.echo(f"The administrator {name} is removed.")
            return
        if generate or two_step is None:
            password = new_password() if generate else _typed_password()
            accounts.set_password(password, name)
            accounts.record(COMMAND_LINE, f"set the password of {name}")
            typer.echo(f"Password of {name}: {password}" if generate else f"The password of {name} is set.")
        if two_step is not None:
            secret = accounts.set_two_step(name, two_step)
            accounts.record(COMMAND_LINE, f"turned two-step sign-in of {name} {'on' if two_step else 'off'}")
            typer.echo(
                f"{name} signs in with the password alone."
                if secret is None
                else f"Enter this in an app for one-time codes (shown only now): {secret}\n"
                f"or open: {time_address(secret, opened.study.title, name)}"
            )


def _typed_password() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt("New password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\n")


def upgrade(study: Path = options.STUDY, database: str | None = options.DATABASE) -> None:
    """Upgrade the database of a study made by an older version. Make a copy first.

    Example: cogstage study upgrade study
    """
    from cogstage.study.folder import open_folder

    open_folder(study, database, upgrade=True).close()
    typer.echo("The database of the study is up to date.")


COMMANDS = {
    "serve": serve,
    "invite": invite,
    "close": close_study,
    "reopen": reopen,
    "admin-password": admin_password,
    "upgrade": upgrade,
}
