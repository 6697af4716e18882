"""Adds an entry to a dict literal in a Python file, leaving every other character as it is."""

import ast


class CannotRegister(Exception):
    """The file has no such dict literal where an entry could be added."""


def with_entry(source: str, name: str, entry: str) -> str:
    """`entry`, whole lines, becomes the last of the module-level dict `name`. Raises CannotRegister."""
    end = _last_line(source, name)
    lines = source.splitlines(keepends=True)
    if lines[end - 1].endswith("= {}\n"):
        lines[end - 1 : end] = [lines[end - 1].replace("{}", "{"), "}\n"]
        end += 1
    if lines[end - 1].strip() != "}":
        raise CannotRegister(f"{name}: expected a dict literal that ends with a line of its own, got {lines[end - 1].strip()!r}")
    extended = "".join([*lines[: end - 1], entry, *lines[end - 1 :]])
    ast.parse(extended)
    return extended


def _last_line(source: str, name: str) -> int:
    for statement in ast.parse(source).body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.Dict(end_lineno=int(end))) if found == name:
                return end
            case _:
                pass
    raise CannotRegister(f"{name}: expected a dict literal of this name at the top level of its registry, found none")
