"""Values of large JSON files, one at a time: the items of an array (``entry`` of a bundle, ``documents`` of BioC)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cogstage.errors import CogstageError
from cogstage.input_files import LONGEST_LINE

_CHUNK = 1 << 16
_NEAR_END = 16  # an error this close to the end of what was read may only mean that more must be read
_MOST_DIGITS = 4_000  # Python refuses to read longer numbers; they come as text


class BrokenJson(CogstageError):
    """The text is not JSON from some place on."""


class JsonScanner:
    """Reads values from a text stream; holds no more of it than the value under way, up to a limit."""

    def __init__(self, handle: io.TextIOBase, path: Path) -> None:
        self._handle = handle
        self._path = path
        self._buffer = ""
        self._position = 0
        self._line = 1
        self._column = 1
        self._ended = False
        self._decoder = json.JSONDecoder()
        self._lenient = json.JSONDecoder(parse_int=lambda text: int(text) if len(text) < _MOST_DIGITS else text)

    def items(self, key: str) -> Iterator[tuple[int, Any]]:
        """The items of the array under ``key`` of a top-level object, each with its line.

        A top-level object without that key is itself the only item; a top-level array gives its items. Several
        top-level values may follow each other.
        """
        yield from self._top(key)
        while self._more():
            yield from self._top(key)

    def _top(self, key: str) -> Iterator[tuple[int, Any]]:
        mark = self._next()
        line = self._line
        if mark == "[":
            yield from self._array()
            return
        if mark != "{":
            raise self._broken("expected an object")
        whole: dict[str, Any] = {}
        keyed = False
        self._skip(1)
        while self._next() != "}":
            name = self._value()
            if not isinstance(name, str) or self._next() != ":":
                raise self._broken("expected a key and a colon")
            self._skip(1)
            if name == key and self._next() == "[":
                keyed = True
                yield from self._array()
            else:
                value = self._value()
                if not keyed:
                    whole[name] = value
            if self._next() == ",":
                self._skip(1)
            elif self._next() != "}":
                raise self._broken("expected a comma or the end of the object")
        self._skip(1)
        if not keyed:
            yield line, whole

    def _array(self) -> Iterator[tuple[int, Any]]:
        self._skip(1)
        while self._next() != "]":
            line = self._line
            yield line, self._value()
            if self._next() == ",":
                self._skip(1)
            elif self._next() != "]":
                raise self._broken("expected a comma or the end of the array")
        self._skip(1)

    def _fill(self) -> bool:
        waiting = len(self._buffer) - self._position
        if waiting > LONGEST_LINE:
            raise self._broken(f"value longer than the limit of {LONGEST_LINE:,} characters")
        more = self._handle.read(max(_CHUNK, waiting))
        self._ended = not more
        self._buffer = self._buffer[self._position :] + more
        self._position = 0
        return bool(more)

    def _next(self) -> str:
        """The next character that is not white space; it stays unread."""
        if not self._more():
            raise self._broken("the file ends too early")
        return self._buffer[self._position]

    def _more(self) -> bool:
        """Whether anything but white space is to come."""
        while True:
            while self._position < len(self._buffer):
                if self._buffer[self._position] not in " \t\r\n":
                    return True
                self._skip(1)
            if not self._fill():
                return False

    def _skip(self, count: int) -> None:
        passed = self._buffer[self._position : self._position + count]
        self._position += count
        if lines := passed.count("\n"):
            self._line += lines
            self._column = len(passed) - passed.rfind("\n")
        else:
            self._column += len(passed)

    def _value(self) -> Any:
        self._next()
        while True:
            try:
                value, end = self._decode()
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated string") or error.pos > len(self._buffer) - _NEAR_END
                if cut and not self._ended and self._fill():
                    continue
                self._skip(error.pos - self._position)
                raise self._broken(error.msg) from None
            except RecursionError:
                raise self._broken("nested too deeply") from None
            if end == len(self._buffer) and not self._ended and self._fill():
                continue  # a number may go on
            self._skip(end - self._position)
            return value

    def _decode(self) -> tuple[Any, int]:
        try:
            return self._decoder.raw_decode(self._buffer, self._position)
        except json.JSONDecodeError:
            raise
        except ValueError:  # a number of thousands of digits
            return self._lenient.raw_decode(self._buffer, self._position)

    def _broken(self, what: str) -> BrokenJson:
        return BrokenJson(f"{self._path}:{self._line}, column {self._column}: not JSON ({what})")
