"""`antiphon sessions`, `queue` and `usage` against a served edge."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from fakes.operated import ACME, OPERATOR, OTHER, Operated, operated
from fakes.ports import free_port
from realtime.cli import main
from realtime.settings import API_KEY_VARIABLE
from sessions.store.records import Order


@pytest_asyncio.fixture
async def house(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Operated]:
    """The environment has the operator's key."""
    async with operated() as made:
        monkeypatch.setenv(API_KEY_VARIABLE, made.keys[OPERATOR])
        await made.has_node("a", seats=2_000)
        yield made


async def run(house: Operated, *arguments: str) -> int:
    """In a thread, as it has a loop of its own."""
    return await asyncio.to_thread(main, [*arguments, "--url", house.url])


async def test_sessions_in_a_table(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    await house.has_session("sess_1", ACME, audio_in_s=3.5)
    await house.has_session("sess_22", OTHER)
    assert await run(house, "sessions", "list") == 0
    heading, first, second = capsys.readouterr().out.splitlines()
    assert heading.split() == ["SESSION", "TENANT", "KIND", "STATE", "NODE", "LIFE", "LEFT"]
    assert first.split()[:6] == ["sess_1", "acme", "voice", "opening", "a", "3,600"]
    assert second.index("other") == first.index("acme")
    assert await run(house, "sessions", "list", "--tenant", OTHER) == 0
    assert "sess_1 " not in capsys.readouterr().out


async def test_more_sessions_than_a_page(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1_100):
        await house.has_session(f"sess_{number:04}")
    assert await run(house, "sessions", "list", "--limit", "1050", "--json") == 0
    found = [each["id"] for each in json.loads(capsys.readouterr().out)]
    assert found == [f"sess_{number:04}" for number in range(1_050)]


async def test_one_session_is_shown_and_closed(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    await house.has_session("sess_1", audio_in_s=3.5, tokens_out=1_200)
    assert await run(house, "sessions", "show", "sess_1") == 0
    assert "used       audio_in_s 3.5, tokens_out 1,200" in capsys.readouterr().out
    assert await run(house, "sessions", "close", "sess_1") == 0
    assert capsys.readouterr().out == "sess_1: closing at a\n"
    await house.store.disown("sess_1", "a")
    assert await run(house, "sessions", "close", "sess_1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["status"] == "deleted"


async def test_the_queue_and_what_is_taken(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    await house.has_session("sess_1")
    assert await run(house, "queue") == 0
    said = capsys.readouterr().out
    assert "0 wait, of 100 that may, 300 s at most" in said
    assert "calibrated: 6 of kind voice" in said
    assert ["node:a:sessions", "1", "2,000"] in [line.split() for line in said.splitlines()]
    assert await run(house, "queue", "--json") == 0
    assert json.loads(capsys.readouterr().out)["seats"]["active"] == 1


async def test_usage_of_all_or_of_one(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    await house.store.bill(OTHER, "sess_9", {"tokens_in": 12})
    assert await run(house, "usage") == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert lines[1:] == [[ACME, "0", "3", "-"], ["idle", "0", "-", "-"], [OTHER, "0", "-", "tokens_in 12"]]
    assert await run(house, "usage", "--tenant", OTHER, "--json") == 0
    assert [each["usage"] for each in json.loads(capsys.readouterr().out)] == [{"tokens_in": 12.0}]


async def test_what_is_large_is_shown_with_all_its_digits(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    await house.has_node("b", seats=1_234_567)
    assert await run(house, "queue") == 0
    assert ["node:b:sessions", "0", "1,234,567"] in [line.split() for line in capsys.readouterr().out.splitlines()]


async def test_of_a_tenant_that_is_not_there_nothing_is_said_of_the_others(
    house: Operated, capsys: pytest.CaptureFixture[str]
) -> None:
    await house.store.bill(OTHER, "sess_9", {"tokens_in": 12})
    assert await run(house, "usage", "--tenant", "nobody") == 0
    assert capsys.readouterr().out == "no tenant nobody has used anything\n"


@pytest.mark.parametrize("limit", ["-1", "0", "x", "", "1.5"])
async def test_no_list_is_cut_to_nothing(house: Operated, capsys: pytest.CaptureFixture[str], limit: str) -> None:
    await house.has_session("sess_1")
    with pytest.raises(SystemExit):
        await run(house, "sessions", "list", f"--limit={limit}")
    assert "--limit: expected a number from 1" in capsys.readouterr().err


@pytest.mark.parametrize("session", ["sess_none", "a/../b", "{x}", "a\0b", "ü" * 100])
async def test_what_is_not_there_is_told_in_a_sentence(house: Operated, capsys: pytest.CaptureFixture[str], session: str) -> None:
    assert await run(house, "sessions", "show", session) == 1
    said = capsys.readouterr().err
    assert said.startswith("antiphon: ")
    assert said.count("\n") == 1


async def test_a_wrong_key_and_a_server_that_is_not_there(
    house: Operated, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(API_KEY_VARIABLE, house.keys[ACME])
    assert await run(house, "usage") == 1
    assert "the scope admin" in capsys.readouterr().err
    house.url = f"http://127.0.0.1:{free_port()}"
    assert await run(house, "queue") == 1
    assert "does not answer" in capsys.readouterr().err
    assert house.keys[ACME] not in capsys.readouterr().err


@pytest.mark.parametrize("url", ["", "http://", "ftp://127.0.0.1", "file:///etc"])
def test_an_address_that_is_none_is_said_to_be_the_fault(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["queue", "--url", url]) == 1
    assert capsys.readouterr().err == f"antiphon: --url: expected one such as http://127.0.0.1:8080, got {url!r}\n"


async def test_nodes_of_the_store_are_listed_and_told_to_drain(house: Operated, capsys: pytest.CaptureFixture[str]) -> None:
    cursor, _ = await house.store.news("a", "", 0)
    assert await run(house, "nodes", "list") == 0
    heading, first, *_ = capsys.readouterr().out.splitlines()
    assert heading.split()[:5] == ["NODE", "HOST", "ADDRESS", "STATE", "TICKETS"]
    assert first.split()[:5] == ["a", "h", "10.0.0.1:8080", "ready", "0"]
    assert await run(house, "nodes", "drain", "a") == 0
    assert await run(house, "nodes", "undrain", "a", "--json") == 0
    assert capsys.readouterr().out.startswith("a is told to drain\n")
    assert (await house.store.news("a", cursor, 1))[1] == (Order("drain", ""), Order("undrain", ""))
    assert await run(house, "nodes", "drain", "b") == 1
    assert "expected one of a, edge-1, got 'b'" in capsys.readouterr().err
