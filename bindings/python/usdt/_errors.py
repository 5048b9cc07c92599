# SPDX-License-Identifier: BSD-2-Clause
from __future__ import annotations

import os
from typing import ClassVar


class Error(OSError):
    """What libusdt-c could not do. `errno` is that of the error's kind; the message says what to do where something can
    be done."""

    kind: ClassVar[str] = "error"
    #: The errno of the system call that failed; 0: there was none.
    os_error: int
    #: Where in the text that was parsed, from 0 on.
    column: int | None
    #: All that the kernel's verifier said of a program it refused.
    log: str

    def __init__(self, number: int, message: str, *, os_error: int = 0, column: int | None = None, log: str = "") -> None:
        super().__init__(number, message)
        self.os_error, self.column, self.log = os_error, column, log

    def __str__(self) -> str:
        return self.strerror or os.strerror(self.errno)


class InvalidArgument(Error, ValueError):
    """Something that cannot be meant."""
    kind = "invalid_argument"


class SyntaxFault(InvalidArgument):
    """A name or an expression that does not parse; `column` says where."""
    kind = "syntax"


class NotFound(Error, LookupError):
    """No such file, process, probe or function."""
    kind = "not_found"


class NoPermission(Error, PermissionError):
    """The kernel or the file system refused for lack of privilege."""
    kind = "no_permission"


class NotSupported(Error):
    """This kernel, machine or kind of file cannot do it."""
    kind = "not_supported"


class VerifierRefused(Error):
    """The kernel refused a BPF program; `log` has why."""
    kind = "verifier"


class LimitReached(Error):
    """A limit of resources or sizes."""
    kind = "limit"


# By enum usdtc_error_kind.
_CLASSES: dict[int, type[Error]] = {1: InvalidArgument, 2: SyntaxFault, 3: NotFound, 4: NoPermission, 5: NotSupported,
                                    8: LimitReached, 12: VerifierRefused}


def error_of_kind(kind: int, number: int, message: str, *, os_error: int, column: int | None, log: str) -> Exception:
    if kind == 13:
        return MemoryError(message)
    return _CLASSES.get(kind, Error)(number, message, os_error=os_error, column=column, log=log)
