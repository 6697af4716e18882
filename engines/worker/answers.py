"""What a model gives, looked at before anything is built on it: nobody holds an integrator's code to its types, and what is wrong
there is to cost one request, not the worker and all who are in it."""

from collections.abc import Mapping
from types import UnionType
from typing import TypeAlias, cast

from engines.models import Produced
from engines.payloads import Array, Payload
from engines.worker.foreign import attempt

Answer: TypeAlias = list[Produced] | Exception


def answers(given: object, count: int) -> list[Answer]:
    """Of a call for so many, one for each."""
    found = attempt(_listed, given, "the model's answer")
    if not isinstance(found, Exception) and len(found) != count:
        found = RuntimeError(f"the model's answer: expected one for each of {count} inputs, got {len(found)}")
    if isinstance(found, Exception):
        return [found] * count
    return [one if isinstance(one, Exception) else attempt(outputs, one) for one in found]


def outputs(given: object) -> list[Produced]:
    """Raises TypeError, which names the place, what was expected and what came."""
    found = _listed(given, "the model's outputs")
    for one in found:
        _check_output(one)
    return cast(list[Produced], found)


def _listed(given: object, place: str) -> list[object]:
    if not isinstance(given, list | tuple):
        raise _wrong(place, "a list", given)
    return list(cast(list[object], given))


def _check_output(one: object) -> None:
    if not isinstance(one, Produced):
        raise _wrong("an output of the model", "Produced", one)
    _expect(one.payload, Payload, "payload")
    _expect(one.pts, float | int, "pts")
    _expect(one.units, int, "units")
    _expect(one.payload.text, str, "payload.text")
    _check_named(one.payload.arrays, Array, "payload.arrays")
    _check_named(one.payload.attributes, bool | int | float | str, "payload.attributes")


def _check_named(given: object, kind: type | UnionType, place: str) -> None:
    _expect(given, dict, place)
    for name, value in cast(Mapping[object, object], given).items():
        _expect(name, str, f"{place}, a name")
        _expect(value, kind, f"{place}[{name!r}]")


def _expect(given: object, kind: type | UnionType, place: str) -> None:
    if not isinstance(given, kind):
        raise _wrong(f"an output's {place}", kind.__name__ if isinstance(kind, type) else str(kind), given)


def _wrong(place: str, expected: str, given: object) -> TypeError:
    return TypeError(f"{place}: expected {expected}, got {type(given).__name__}")
