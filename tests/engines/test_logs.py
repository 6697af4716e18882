"""Structured logs."""

import json
import logging
import re

import pytest

from engines.logs import JsonLines, LogStyle, TextLines, about, set_up


def line(logger: logging.Logger, message: str, *args: object, error: Exception | None = None) -> dict[str, str]:
    info = (type(error), error, None) if error else None
    record = logger.makeRecord(logger.name, logging.WARNING, __file__, 1, message, args, info)
    return json.loads(JsonLines("mouth").format(record))


def test_a_line_names_time_level_process_logger_and_message() -> None:
    logged = line(logging.getLogger("engines.x"), "step took %d ms", 3)
    assert logged.pop("time").endswith("Z")
    assert logged == {"level": "warning", "process": "mouth", "logger": "engines.x", "message": "step took 3 ms"}


def test_lines_carry_the_session_and_the_request_that_they_are_about() -> None:
    logger = logging.getLogger("engines.x")
    with about(session="s1", request="r1"):
        inside = line(logger, "inside")
    assert (inside["session_id"], inside["request_id"]) == ("s1", "r1")
    assert "session_id" not in line(logger, "outside")


@pytest.mark.parametrize(
    "text", ["two\nlines", "a\rreturn", "a\x1b[2Jcleared\x9bscreen", "another\u2028line", "quote \" and 'quote'", "ünïcode 🙂"]
)
def test_one_line_whatever_the_message(text: str) -> None:
    logger = logging.getLogger("engines.x")
    record = logger.makeRecord(logger.name, logging.INFO, __file__, 1, "%s", (text,), None)
    formatted = JsonLines("mouth").format(record)
    assert "\n" not in formatted
    assert json.loads(formatted)["message"] == text
    assert TextLines("mouth").format(record).isprintable()


def test_exceptions_are_told_with_their_type() -> None:
    assert "ValueError: bad" in line(logging.getLogger("engines.x"), "failed", error=ValueError("bad"))["exception"]


def test_text_has_one_line_for_people() -> None:
    logger = logging.getLogger("engines.x")
    record = logger.makeRecord(logger.name, logging.WARNING, __file__, 1, "step took %d ms", (3,), None)
    with about(session="s1", request="r1"):
        assert re.fullmatch(
            r"\d\d:\d\d:\d\d warning  mouth: step took 3 ms \(session s1, request r1\)", TextLines("mouth").format(record)
        )
    assert TextLines("mouth").format(record).endswith(": step took 3 ms")


def test_the_style_says_what_is_logged_and_how(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    for style in (LogStyle("warning", "text"), LogStyle("info", "json")):
        set_up("mouth", style)
        logging.getLogger("engines.x").info("quiet")
        logging.getLogger("engines.x").warning("loud")
    text, *lines = capsys.readouterr().err.splitlines()
    assert text.endswith("mouth: loud")
    assert [json.loads(line)["message"] for line in lines] == ["quiet", "loud"]
