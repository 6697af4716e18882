"""What an operator sees and may do over REST, and how much of it a tenant."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from fakes.operated import ACME, LEASE_S, OPERATOR, OTHER, REST_ONLY, Operated, operated
from sessions.retention.settings import SessionLimits
from sessions.store.interface import StoreDown
from sessions.store.records import Order


@pytest_asyncio.fixture
async def house() -> AsyncIterator[Operated]:
    async with operated() as made:
        await made.has_node("a")
        yield made


def ids(page: dict[str, list[dict[str, str]]]) -> list[str]:
    return [each["id"] for each in page["data"]]


async def test_an_operator_sees_all_sessions_page_by_page(house: Operated) -> None:
    for number in range(4):
        await house.has_session(f"sess_{number}", ACME if number % 2 else OTHER, audio_in_s=number)
    status, page = await house.ask("/sessions?limit=3")
    assert (status, ids(page), page["next"]) == (200, ["sess_0", "sess_1", "sess_2"], "sess_2")
    assert page["data"][1] == {
        "id": "sess_1",
        "tenant": ACME,
        "kind": "voice",
        "model": "m",
        "state": "opening",
        "node": "a",
        "principal": "k1",
        "life_s": pytest.approx(3600, abs=1),
        "usage": {"audio_in_s": 1.0},
    }
    status, page = await house.ask("/sessions?limit=3&after=sess_2")
    assert (ids(page), page["next"]) == (["sess_3"], None)
    assert ids((await house.ask(f"/sessions?tenant={ACME}"))[1]) == ["sess_1", "sess_3"]
    assert (await house.ask("/sessions?limit=4"))[1]["next"] is None


async def test_a_tenant_sees_its_own_alone(house: Operated) -> None:
    await house.has_session("sess_mine", ACME)
    await house.has_session("sess_theirs", OTHER)
    assert ids((await house.ask("/sessions", ACME))[1]) == ["sess_mine"]
    status, refused = await house.ask(f"/sessions?tenant={OTHER}", ACME)
    assert (status, refused["error"]["code"]) == (403, "tenant_not_allowed")
    theirs = await house.ask("/sessions/sess_theirs", ACME)
    never_was = await house.ask("/sessions/sess_xheirs", ACME)
    assert theirs[0] == never_was[0] == 404
    assert theirs[1]["error"]["message"].replace("sess_theirs", "") == never_was[1]["error"]["message"].replace("sess_xheirs", "")
    assert (await house.ask("/sessions/sess_theirs", ACME, "DELETE"))[0] == 404
    assert await house.store.look("sess_theirs") is not None
    assert (await house.ask("/sessions/sess_mine", ACME))[0] == 200


@pytest.mark.parametrize("path", ["/nodes", "/queue", "/seats", "/tenants"])
async def test_the_rest_is_for_the_scope_admin(house: Operated, path: str) -> None:
    assert (await house.ask(path))[0] == 200
    status, refused = await house.ask(path, ACME)
    assert (status, refused["error"]["code"]) == (403, "scope_not_allowed")
    assert (await house.ask("/sessions", REST_ONLY))[0] == 403
    assert (await house.ask("/nodes/a/drain", ACME, "POST"))[0] == 403


async def test_a_session_that_runs_is_ended_by_its_node(house: Operated) -> None:
    await house.has_session("sess_1")
    cursor, _ = await house.store.news("a", "", 0)
    status, told = await house.ask("/sessions/sess_1", method="DELETE")
    assert (status, told) == (202, {"id": "sess_1", "status": "closing", "node": "a"})
    _, news = await house.store.news("a", cursor, 1)
    assert news == (Order("close", "sess_1"),)


async def test_a_session_that_nobody_runs_is_billed_and_deleted_at_once(house: Operated) -> None:
    await house.has_session("sess_1", audio_out_s=7.5)
    await house.store.disown("sess_1", "a")
    status, told = await house.ask("/sessions/sess_1", method="DELETE")
    assert (status, told["status"]) == (200, "deleted")
    assert await house.store.look("sess_1") is None
    assert await house.store.bills() == {ACME: {"audio_out_s": 7.5}}
    assert (await house.ask("/sessions/sess_1", method="DELETE"))[0] == 404


async def test_a_session_whose_file_cannot_be_deleted_is_still_there_and_can_be_deleted_again(tmp_path: Path) -> None:
    stuck = tmp_path / "sess_1.1.snapshot"
    stuck.mkdir()  # no file of that name can be unlinked
    async with operated(SessionLimits(snapshots=str(tmp_path))) as house:
        await house.has_node("a")
        await house.has_session("sess_1", audio_out_s=7.5)
        await house.store.disown("sess_1", "a")
        status, told = await house.ask("/sessions/sess_1", method="DELETE")
        assert (status, told["error"]["code"]) == (500, "snapshot_not_deleted")
        assert str(tmp_path) not in told["error"]["message"]
        assert (await house.ask("/sessions/sess_1"))[0] == 200
        stuck.rmdir()
        assert (await house.ask("/sessions/sess_1", method="DELETE"))[1]["status"] == "deleted"
        assert await house.store.bills() == {ACME: {"audio_out_s": 7.5}}


async def test_a_dead_nodes_session_gives_its_seat_back_when_it_is_closed(house: Operated) -> None:
    await house.has_session("sess_1")
    await house.clock.advance(LEASE_S + 1)
    await house.store.census()
    status, told = await house.ask("/sessions/sess_1", method="DELETE")
    assert (status, told["status"]) == (200, "deleted")
    assert (await house.store.census()).active == 0


async def test_a_node_is_told_to_drain_and_not_to(house: Operated) -> None:
    cursor, _ = await house.store.news("a", "", 0)
    status, listed = await house.ask("/nodes")
    assert (status, ids(listed)) == (200, ["a", "edge-1"])
    assert listed["data"][0]["address"] == "10.0.0.1:8080"
    assert (await house.ask("/nodes/a/drain", method="POST"))[0] == 202
    assert (await house.ask("/nodes/a/undrain", method="POST"))[0] == 202
    _, news = await house.store.news("a", cursor, 1)
    assert news == (Order("drain", ""), Order("undrain", ""))


async def test_a_dead_node_hears_nothing(house: Operated) -> None:
    await house.clock.advance(LEASE_S + 1)
    status, refused = await house.ask("/nodes/a/drain", method="POST")
    assert (status, refused["error"]["code"]) == (404, "node_not_found")
    assert (await house.ask("/nodes/b/undrain", method="POST"))[0] == 404


async def test_queue_seats_and_tenants(house: Operated) -> None:
    await house.has_session("sess_1", ACME)
    await house.store.bill(OTHER, "sess_0", {"tokens_in": 12})
    assert (await house.ask("/queue"))[1] == {
        "waiting": 0,
        "longest_queue": 100,
        "longest_wait_s": 300.0,
        "estimate_error_s": None,
    }
    _, seats = await house.ask("/seats")
    assert (seats["active"], seats["lent"]) == (1, 0)
    assert seats["resources"]["node:a:sessions"] == {"used": 1.0, "capacity": 4.0}
    assert seats["calibrated"]["voice"]["seats"] == 6
    _, tenants = await house.ask("/tenants")
    assert [(each["id"], each["active"], each["sessions"], each["usage"]) for each in tenants["data"]] == [
        (ACME, 1, 3, {}),
        ("idle", 0, None, {}),
        (OTHER, 0, None, {"tokens_in": 12.0}),
    ]
    _, page = await house.ask("/tenants?limit=1&after=acme")
    assert (ids(page), page["next"]) == (["idle"], "idle")


@pytest.mark.parametrize("bad", ["{x}", "a%00b", "%2e%2e%2fx", "a" * 65, "%F0%9F%A6%8A", "sess 1", "a" * 7000])
async def test_what_is_no_id_is_unknown(house: Operated, bad: str) -> None:
    for method in ("GET", "DELETE"):
        status, refused = await house.ask(f"/sessions/{bad}", method=method)
        assert (status, refused["error"]["code"]) in ((404, "session_not_found"), (404, "not_found"))
        assert len(refused["error"]["message"]) < 400
    assert (await house.ask(f"/nodes/{bad}/drain", method="POST"))[0] == 404


LIMITS = ("0", "1001", "-1", "x", "1e3", "9" * 3_000, "", "%D9%A3")
NAMES = ("{x}", "a%00b", "", "a%20b", "a" * 65)


@pytest.mark.parametrize("query", [*(f"limit={each}" for each in LIMITS), *(f"tenant={each}" for each in NAMES), "after={x}"])
async def test_a_page_that_cannot_be(house: Operated, query: str) -> None:
    field = query.partition("=")[0]
    status, refused = await house.ask(f"/sessions?{query}")
    assert (status, refused["error"]["param"]) == (400, field)
    assert len(refused["error"]["message"]) < 400


async def test_while_the_store_is_down(house: Operated, monkeypatch: pytest.MonkeyPatch) -> None:
    async def down(*_: object) -> None:
        raise StoreDown("the line is cut", 2.0)

    for call in ("sessions", "look", "nodes", "census"):
        monkeypatch.setattr(house.store, call, down)
    for path in ("/sessions", "/sessions/sess_1", "/nodes", "/queue", "/seats", "/tenants"):
        status, refused = await house.ask(path, OPERATOR)
        assert (status, refused["error"]["code"]) == (503, "store_down")
