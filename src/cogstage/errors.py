"""Errors for users: one line that says what is wrong, where, and what to do."""

from __future__ import annotations


class CogstageError(Exception):
    """An error with a one-line message for the user. The command line exits with code 1.

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
    """An invalid call, such as an unknown path, option or name. The command line exits with code 2.

    Messages name parameters in backticks; the command line shows their flags.

    Examples
    --------
    >>> cs.BuildOptions(unit="page")
    Traceback (most recent call last):
    cogstage.errors.UsageError: `unit` must be one of auto, document, sentence, visit, patient-window, not page
    """

    exit_code = 2


class LeakageError(CogstageError):
    """A method requested data that it must not see during fitting.

    Examples
    --------
    >>> cs.Dataset.load("data").for_fitting().pairs("causes", "test")
    Traceback (most recent call last):
    cogstage.errors.LeakageError: the test pairs of causes were requested during fitting; use the Dataset for evaluation
    """
