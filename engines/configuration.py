"""Sections of a YAML file into typed records; every error says file, key, expected and got."""

import re
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

T = TypeVar("T")
ANY = "[...]"
LONGEST_SHOWN = 80


class ConfigurationError(ValueError):
    """One sentence for the operator, after the name of the file."""

    def __init__(self, file: Path, fault: str) -> None:
        super().__init__(f"{file}: {fault}")


class WrongValue(ConfigurationError):
    def __init__(self, file: Path, key: str, expected: str, got: str) -> None:
        super().__init__(file, f"{key}: expected {expected}, got {got}")


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that stands twice in one mapping, which YAML's loaders let pass."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        for name in names:
            if names.count(name) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {name!r} stands twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read(file: Path, sections: Iterable[str]) -> dict[str, object]:
    """The file's sections as plain values. Raises ConfigurationError for a missing or broken file and an unknown section."""
    try:
        content: object = yaml.load(_text(file), _StrictLoader)  # a SafeLoader
    except yaml.MarkedYAMLError as broken:
        place = f"line {broken.problem_mark.line + 1}" if broken.problem_mark else "the file"
        raise WrongValue(file, place, "YAML", broken.problem or "something else") from broken
    except yaml.YAMLError as broken:
        raise WrongValue(file, "the file", "YAML", " ".join(str(broken).split())) from broken
    if content is None:
        content = {}
    root = names_to_values(file, "the file", content)
    known = list(sections)
    for key in root:
        if key not in known:
            raise WrongValue(file, key, f"one of the sections {', '.join(known)}", "an unknown one")
    return root


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as absent:
        raise ConfigurationError(file, "there is no such file") from absent
    except UnicodeDecodeError as binary:
        raise ConfigurationError(file, "this is no text in UTF-8") from binary
    except OSError as unreadable:
        raise ConfigurationError(file, f"it cannot be read: {unreadable.strerror}") from unreadable


def names_to_values(file: Path, key: str, value: object) -> dict[str, object]:
    """Raises ConfigurationError unless `value` is a mapping whose keys are strings."""
    try:
        return msgspec.convert(value, dict[str, object])
    except msgspec.ValidationError as wrong:
        raise WrongValue(file, key, "a mapping with names as keys", shown(value)) from wrong


def record(file: Path, key: str, value: object, kind: type[T]) -> T:
    """`value` as a record of `kind`; its fields' names and limits are those that the record declares."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as wrong:
        raise _explained(file, key, value, kind, str(wrong)) from wrong


def shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"


def _explained(file: Path, key: str, value: object, kind: type, message: str) -> WrongValue:
    what, _, tail = message.partition(" - at `$")
    path = _named(value, kind, re.findall(r"\w+|\[\.\.\.\]", tail.partition("`")[0]))
    where = ".".join([key, *path])
    if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        return WrongValue(file, f"{where}.{unknown[1]}", f"one of {_choices(kind, path)}", "an unknown key")
    if missing := re.fullmatch(r"Object missing required field `(.*)`", what):
        return WrongValue(file, f"{where}.{missing[1]}", "a value", "nothing")
    if own_words := re.fullmatch(r"(?:.*\.)?(\w+): expected (.*), got (.*)", what):
        field = where if path[-1:] == [own_words[1]] else f"{where}.{own_words[1]}"
        return WrongValue(file, field, own_words[2], own_words[3])
    if expected := re.match(r"Expected (.*?)(?:, got .*)?$", what):
        plain = expected[1].replace("`", "").replace("object", "a mapping")
        return WrongValue(file, where, plain, shown(_at(value, path)))
    if what.startswith("Invalid enum value"):
        return WrongValue(file, where, f"one of {_choices(kind, path)}", shown(_at(value, path)))
    return WrongValue(file, where, "a valid value", what)


def _named(value: object, kind: type, path: list[str]) -> list[str]:
    """With the name of the entry at fault in place of `[...]`, as msgspec writes that of a mapping: it is refused also in a copy
    that has no other entry."""
    if ANY not in path:
        return path
    before, after = path[: path.index(ANY)], path[path.index(ANY) + 1 :]
    for name in _names_of(_at(value, before)):
        try:
            msgspec.convert(_with_only(value, before, name), kind)
        except msgspec.ValidationError:
            return _named(value, kind, [*before, name, *after])
    return before


def _names_of(value: object) -> list[str]:
    return [name for name in msgspec.convert(value, dict[object, object]) if isinstance(name, str)]


def _with_only(value: object, path: list[str], name: str) -> object:
    """A copy in which the mapping at `path` has this entry alone."""
    entries = msgspec.convert(value, dict[object, object])
    if not path:
        return {name: entries[name]}
    return entries | {path[0]: _with_only(entries[path[0]], path[1:], name)}


def _at(value: object, path: list[str]) -> object:
    for step in path:
        if isinstance(value, list):
            value = msgspec.convert(value, list[object])[int(step)]
        else:
            value = msgspec.convert(value, dict[object, object])[step]
    return value


def _choices(kind: type, path: list[str]) -> str:
    """What may stand at `path` inside a record of `kind`: the names of its fields, or of its values."""
    here = msgspec.inspect.type_info(kind)
    for step in path:
        if isinstance(here, msgspec.inspect.StructType):
            here = next(field.type for field in here.fields if field.encode_name == step)
        elif isinstance(here, msgspec.inspect.DictType):
            here = here.value_type
    match here:
        case msgspec.inspect.StructType(fields=fields):
            return ", ".join(field.encode_name for field in fields)
        case msgspec.inspect.LiteralType(values=values):
            return ", ".join(str(choice) for choice in values)
        case _:
            return "the values that the documentation names"
