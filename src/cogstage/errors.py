"""The errors a user may see: one line that says what is wrong, where, and what to do."""

from __future__ import annotations


class CogstageError(Exception):
    """Something failed; the message is one line for the user. The command line exits with 1."""

    exit_code = 1


class UsageError(CogstageError):
    """The call itself is wrong (unknown path, option or name). The command line exits with 2."""

    exit_code = 2


class LeakageError(CogstageError):
    """Something that is being fitted asked for data that it must not see."""
