"""Exceptions: one class a status, each deriving the built-in one that names the same fault where there is one."""

from __future__ import annotations

from typing import ClassVar

from uform._uform import Status


class Error(RuntimeError):
    """A failure of the library, or one that the package caught before it.

    `status` is what the C ABI reported. `item` is the index of the item at fault in its batch, None where none is.
    """

    status: ClassVar[Status]
    item: int | None

    def __init__(self, message: str = "", *, item: int | None = None) -> None:
        super().__init__(message)
        self.item = item


class OutOfMemoryError(Error, MemoryError):
    """Host or device memory ran out."""

    status = Status.OUT_OF_MEMORY


class ShapeMismatchError(Error, ValueError):
    """Sizes of arguments do not fit each other or the model."""

    status = Status.SHAPE_MISMATCH


class UnsupportedLayoutError(Error, ValueError):
    """A memory layout or a file format that is not taken."""

    status = Status.UNSUPPORTED_LAYOUT


class UnknownKindError(Error, ValueError):
    """A number that is no member of its enumeration."""

    status = Status.UNKNOWN_KIND


class InputOutputError(Error, OSError):
    """The operating system refused a file."""

    status = Status.IO


class DeviceError(Error):
    """A device failed, or memory of the wrong device was named."""

    status = Status.DEVICE


class MalformedError(Error, ValueError):
    """The contents of a file or of a buffer are broken."""

    status = Status.MALFORMED


class InternalError(Error):
    """A fault of the library itself."""

    status = Status.INTERNAL


class ConfigMismatchError(Error, ValueError):
    """Two configurations that must agree do not."""

    status = Status.CONFIG_MISMATCH


class ContendedError(Error):
    """The executor or the arena serves another call, or the arena is pinned."""

    status = Status.CONTENDED


class CancelledError(Error):
    """The progress handler stopped the call."""

    status = Status.CANCELLED


class UnsupportedError(Error, NotImplementedError):
    """The hardware, the build or the model cannot do it."""

    status = Status.UNSUPPORTED


class InvalidArgumentError(Error, ValueError):
    """An argument that can never be right."""

    status = Status.INVALID_ARGUMENT


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An object of a type that the argument never takes."""


_CLASSES: dict[int, type[Error]] = {
    kind.status: kind
    for kind in (
        OutOfMemoryError,
        ShapeMismatchError,
        UnsupportedLayoutError,
        UnknownKindError,
        InputOutputError,
        DeviceError,
        MalformedError,
        InternalError,
        ConfigMismatchError,
        ContendedError,
        CancelledError,
        UnsupportedError,
        InvalidArgumentError,
    )
}


def error_of(status: int, message: str, item: int | None) -> Error:
    """What the binding raises for a status; it passes SUCCESS, which no failure has, for an object of a wrong type."""
    kind = ArgumentTypeError if status == Status.SUCCESS else _CLASSES[status]
    return kind(message, item=item)
