"""Every error of a settings file names file, key, expected and got."""

from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from engines.configuration import ConfigurationError, read, record


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    size: Annotated[int, msgspec.Meta(ge=1)] = 1


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    level: Literal["low", "high"] = "low"
    inner: Inner = msgspec.field(default_factory=Inner)
    times: tuple[int, ...] = ()
    even: int = 0
    named: dict[str, Inner] = {}

    def __post_init__(self) -> None:
        if self.even % 2:
            raise ValueError(f"even: expected an even number, got {self.even}")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "x", "colour": 1}, "here.colour: expected one of name, level, inner, times, even, named, got an unknown key"),
        ({}, "here.name: expected a value, got nothing"),
        ({"name": 5}, "here.name: expected str, got 5"),
        ({"name": "x", "level": "mid"}, "here.level: expected one of high, low, got 'mid'"),
        ({"name": "x", "inner": {"size": 0}}, "here.inner.size: expected int >= 1, got 0"),
        ({"name": "x", "inner": {"sise": 1}}, "here.inner.sise: expected one of size, got an unknown key"),
        ({"name": "x", "inner": 3}, "here.inner: expected a mapping, got 3"),
        ({"name": "x", "times": [1, "two"]}, "here.times.1: expected int, got 'two'"),
        ({"name": "x", "even": 3}, "here.even: expected an even number, got 3"),
        ({"name": "x", "named": {"a": {}, "b": {"size": 0}}}, "here.named.b.size: expected int >= 1, got 0"),
        ({"name": "x", "named": {"a": {}, "7": 3}}, "here.named.7: expected a mapping, got 3"),
        ({"name": "x", "named": {"b": {"sise": 1}, 7: {}}}, "here.named.b.sise: expected one of size, got an unknown key"),
        ([], "here: expected a mapping, got []"),
        ({"name": ["x" * 200]}, "…"),
    ],
)
def test_errors_name_key_expected_and_got(value: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as wrong:
        record(Path("d.yaml"), "here", value, Outer)
    assert str(wrong.value).startswith("d.yaml: here")
    assert message in str(wrong.value)


def test_what_is_right_comes_back_as_a_record() -> None:
    assert record(Path("d.yaml"), "here", {"name": "x", "times": [1, 2]}, Outer) == Outer("x", times=(1, 2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: [1", "line 2: expected YAML, got expected ',' or ']'"),
        ("a: 1\na: 2", "'a' stands twice"),
        ("- a", "expected a mapping with names as keys, got ['a']"),
        ("b: 1", "b: expected one of the sections a, c, got an unknown one"),
        ("!!python/object/apply:os.getcwd []", "expected YAML"),
    ],
)
def test_a_file_that_is_no_such_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "d.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"d\.yaml") as wrong:
        read(file, ("a", "c"))
    assert message in str(wrong.value)


def test_missing_binary_and_empty_files(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"none.yaml: there is no such file$"):
        read(tmp_path / "none.yaml", ())
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match=r"binary.yaml: this is no text in UTF-8$"):
        read(tmp_path / "binary.yaml", ())
    (tmp_path / "empty.yaml").write_text("")
    assert read(tmp_path / "empty.yaml", ("a",)) == {}
