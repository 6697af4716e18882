"""Replies of the server in the shape that our Functions give them."""

from typing import Any, TypeVar, overload

import msgspec

from sessions.store.failures import not_understood

T = TypeVar("T")


@overload
def understood(reply: object, shape: type[T]) -> T: ...
@overload
def understood(reply: object, shape: object) -> Any: ...
def understood(reply: object, shape: object) -> object:
    """Raises StoreDown when it has another one: a server between versions, or something between us and it."""
    try:
        return msgspec.convert(reply, shape)
    except msgspec.ValidationError as wrong:
        raise not_understood(wrong) from None
