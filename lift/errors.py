"""The exceptions of trilift: a small tree, so that callers can catch a kind or everything.

The command line turns :class:`CertificateError` into exit code 1 ("checked, and it is false") and every
other :class:`TriliftError` into one line on standard error and exit code 2.
"""

__all__ = [
    "ArtifactFormatError",
    "CertificateError",
    "HorizonError",
    "MissingExtraError",
    "ParameterError",
    "ReplayError",
    "StateError",
    "TriliftError",
]


class TriliftError(Exception):
    """Base class of every error that trilift raises on purpose."""


class ParameterError(TriliftError, ValueError):
    """An argument, a stream item or a line of input is not acceptable; nothing was changed."""


class StateError(TriliftError, RuntimeError):
    """The call does not fit the state of the object; the state was not changed."""


class HorizonError(StateError):
    """A step lies past the horizon for which privacy and accuracy were arranged."""


class ReplayError(StateError):
    """A released step was asked for again with another input, or a state belongs to another mechanism.

    Which of the two a repeated step is, "the same input" or "another one", is a fact about the data without
    any noise: it must not reach whoever may see released values only.
    """


class ArtifactFormatError(TriliftError, ValueError):
    """A file is unreadable, truncated, oversized or not in the documented format."""


class CertificateError(TriliftError):
    """A claim was checked in exact arithmetic and is false."""


class MissingExtraError(TriliftError, ImportError):
    """An optional dependency is needed for this call; the message names the extra to install."""
