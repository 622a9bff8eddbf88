"""How long one source may be: the same at every door, so that none fills the memory.

The limit is `data.max_characters`, in characters of a text or items of a list or array. A codec of sound has a limit of
its own, in seconds, and one of pictures in pixels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seqloom.errors import UnreadableError

if TYPE_CHECKING:
    from seqloom.contracts import Codec


def admit(codec: Codec, source: Any, limit: int, name: str, truncate: bool = False) -> Any:
    """The source, unless it is too long: with `truncate` it is cut, else refused."""
    if truncate and (codec.names_files or length_of(source, codec) > limit):
        return codec.cut(source, limit)
    refuse_long(source, limit, name, codec)
    return source


def refuse_long(value: Any, limit: int, name: str, codec: Codec | None = None) -> None:
    if (length := length_of(value, codec)) > limit:
        raise overlong(name, f"{length:,} {'characters' if isinstance(value, str) else 'items'}", limit)


def length_of(value: Any, codec: Codec | None = None) -> int:
    """In characters or items; 0 where neither counts, as in samples of sound or pixels."""
    has_own_limit = codec is not None and codec.names_files and not isinstance(value, str)
    is_sequence = isinstance(value, (str, list, tuple)) or getattr(value, "ndim", 0) > 0
    return len(value) if is_sequence and not has_own_limit else 0


def overlong(name: str, found: str, limit: int) -> UnreadableError:
    return UnreadableError(
        f"{name} has {found}; expected at most {limit:,} (data.max_characters): cut it with --truncate (in Python "
        "truncate=True), or raise the limit with --max-characters (in Python model.max_characters)"
    )
