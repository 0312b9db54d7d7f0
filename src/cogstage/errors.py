"""The errors a user may see: one line that says what is wrong, where, and what to do."""

from __future__ import annotations


class CogstageError(Exception):
    """Something failed; the message is one line for the user. The command line exits with 1.

    Examples
    --------
    >>> cs.Graph.load("empty")
    Traceback (most recent call last):
    cogstage.errors.UsageError: empty is not a folder; expected a graph made by cogstage
    >>> issubclass(cs.UsageError, cs.CogstageError)
    True
    """

    exit_code = 1


class UsageError(CogstageError):
    """The call itself is wrong (unknown path, option or name). The command line exits with 2.

    Messages name parameters in backticks; the command line shows their flags.

    Examples
    --------
    >>> cs.BuildOptions(unit="page")
    Traceback (most recent call last):
    cogstage.errors.UsageError: `unit` must be one of auto, document, sentence, visit, patient-window, not page
    """

    exit_code = 2


class LeakageError(CogstageError):
    """Something that is being fitted asked for data that it must not see.

    Examples
    --------
    >>> cs.Dataset.load("data").for_fitting().pairs("causes", "test")
    Traceback (most recent call last):
    cogstage.errors.LeakageError: the test pairs of causes were asked for while fitting; use the Dataset to evaluate
    """
