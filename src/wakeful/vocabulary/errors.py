"""Errors, sorted by who must act.

WakefulError
├── InvalidInput        the caller must change what it sent
│   └── NotFound        it named something that does not exist
├── Transient           time must pass; may say how long
│   ├── StoreBusy       the database is held by another process, out of reach or read-only
│   ├── StoreFull       the disk is full
│   ├── Overloaded      a bound was reached; nothing was written
│   ├── TooOften        one sender has had what it may have for now
│   ├── Underway        a turn is running where something must be changed
│   ├── Garbled         a model answered with something unreadable
│   └── ModelHung       a model kept us waiting for too long
├── Permanent           a human must act
│   ├── StoreDamaged    the database cannot be trusted
│   ├── StoreRefused    the database may not be opened by this process
│   ├── UnreadableRow   one row means nothing to this release; all others are well
│   ├── NoAnswer        a model read a question and would not answer it
│   ├── ContextOverflow the conversation does not fit the model
│   └── AttachmentRefused a provider does not take an image or a document
└── Invariant           we must act: this is a bug, or the disk lied
    └── StoreFailed     a sync failed: nothing may be acknowledged any more
"""


class WakefulError(Exception):
    """Something went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class InvalidInput(WakefulError):
    """The input breaks a rule."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field = field
        self.rule = rule


class NotFound(InvalidInput):
    """The thing named does not exist."""

    def __str__(self) -> str:
        return self.rule  # a whole sentence already: no field's name before it


class Transient(WakefulError):
    """This may work later."""

    is_free = False  # a model refused the question: nobody pays for it

    def __init__(
        self,
        message: str | None = None,
        *,
        retry_after_s: float | None = None,
        is_free: bool = False,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.is_free = is_free


class StoreBusy(Transient):
    """The database cannot take this now; nothing was written."""


class StoreFull(Transient):
    """The disk is full; nothing was written."""


class Overloaded(Transient):
    """Too much at once; nothing was written."""


class TooOften(Transient):
    """This was asked for too often; nothing was written."""


class Underway(Transient):
    """A turn is running there; nothing was written."""


class Garbled(Transient):
    """The model's answer cannot be read."""


class ModelHung(Transient):
    """The model did not answer in time."""


class Permanent(WakefulError):
    """This will not work until somebody changes something."""

    is_free = True  # a model refused the question: nobody pays for it


class StoreDamaged(Permanent):
    """The database is damaged."""


class StoreRefused(Permanent):
    """The database may not be opened by this process."""


class UnreadableRow(Permanent):
    """A row cannot be read by this release."""


class NoAnswer(Permanent):
    """The model read the question and would not answer it."""

    is_free = False


class ContextOverflow(Permanent):
    """The conversation does not fit the model's context window."""

    def __init__(
        self,
        message: str | None = None,
        *,
        window: int | None = None,
        is_in_bytes: bool = False,
    ) -> None:
        super().__init__(message)
        self.window = window  # in tokens, if the model said so
        self.is_in_bytes = is_in_bytes  # what was sent was too large, however few tokens it had


class AttachmentRefused(Permanent):
    """The provider does not take something that was attached."""


class Invariant(WakefulError):
    """A promise of the runtime was broken; this is a bug."""


class StoreFailed(Invariant):
    """The database could not be synced; nothing is acknowledged from here on."""
