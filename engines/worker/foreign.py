"""The one funnel for exceptions of models and bridges: code of integrators, of which nothing is known."""

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

from engines.connectors import PayloadLost
from engines.messages.to_gateway import ErrorKind
from engines.models import InvalidInput, NoRoom

P = ParamSpec("P")
T = TypeVar("T")


def attempt(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | Exception:
    """What `function` returns, or what it raised, as a value: it ends the request concerned and nothing else."""
    try:
        return function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 (whatever foreign code raises)
        return error


async def attempt_async(work: Awaitable[T]) -> T | Exception:
    """The same for what is awaited. A cancellation passes through."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 (whatever foreign code raises)
        return error


def describe(error: Exception) -> tuple[ErrorKind, str]:
    """Whose fault it was, and a sentence for the caller."""
    if isinstance(error, InvalidInput):
        return ErrorKind.INVALID, str(error)
    if isinstance(error, NoRoom):
        return ErrorKind.OVERLOADED, str(error)
    if isinstance(error, PayloadLost):
        return ErrorKind.REPLICA_LOST, str(error)
    return ErrorKind.ENGINE, f"{type(error).__name__}: {error}"
