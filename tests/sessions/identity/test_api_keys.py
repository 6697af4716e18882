"""Keys open what they were made for, as long as they are valid, and nothing else does; the store is hardly asked."""

import hashlib
import logging

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.doors import START_S, Door
from fakes.hostile import HOSTILE
from fakes.shelves import FakeShelves
from sessions.identity.api_keys import SHELF, NotValid
from sessions.identity.key_ring import KEPT_EXPIRED_S, Grant, NoSuchKey
from sessions.identity.principal import LOCAL, Principal, Scope
from sessions.identity.shelf_view import FRESH_S, MOST_LOOKS, RETRY_S, SOONEST_S, STALE_S
from sessions.store.interface import StoreDown

GRANT = Grant(
    tenant="acme",
    scopes=frozenset((Scope.REST,)),
    kinds=frozenset(("request",)),
    models=frozenset(("smollm2",)),
    origins=("https://acme.example",),
    longest_session_s=60.0,
)


class RevokedMeanwhile(FakeShelves):
    """The first key is gone when a second one is made."""

    async def put(self, shelf: str, name: str, value: bytes, *, only_new: bool = False) -> bytes:
        if shelf == SHELF:
            self.shelves.pop(shelf, None)
        return await super().put(shelf, name, value, only_new=only_new)


async def refusal(door: Door, key: str | None) -> str:
    with pytest.raises(NotValid) as refused:
        await door.credentials.principal(key)
    return str(refused.value)


async def test_a_key_opens_what_it_was_made_for() -> None:
    door = Door()
    key = await door.ring.create(GRANT, 3_600)
    assert await door.credentials.principal(key.text) == Principal(
        tenant="acme",
        key_id=key.key_id,
        scopes=GRANT.scopes,
        kinds=GRANT.kinds,
        models=GRANT.models,
        origins=GRANT.origins,
        expires_at=int(START_S) + 3_600,
        longest_session_s=60.0,
    )


async def test_the_store_has_no_key() -> None:
    door = Door()
    key = await door.ring.create(GRANT)
    kept = door.shelves.shelves[SHELF][key.key_id]
    assert key.text.rpartition("_")[2].encode() not in kept
    assert hashlib.sha256(key.text.encode()).hexdigest().encode() in kept
    assert key.text not in repr(key)


async def test_a_request_costs_no_look_at_the_store() -> None:
    door = Door()
    key = await door.ring.create(GRANT)
    await door.credentials.principal(key.text)
    before = door.shelves.looks
    for _ in range(100):
        await door.credentials.principal(key.text)
    assert door.shelves.looks == before


async def test_nor_do_thousands_of_wrong_ones() -> None:
    door = Door("env")
    await door.ring.create(GRANT)
    await refusal(door, f"ak_{0:012x}_{'x' * 43}")
    before = door.shelves.looks
    for number in range(3_000):
        door.now_s += 0.001
        await refusal(door, f"ak_{number:012x}_{'x' * 43}")
    assert door.shelves.looks == before  # all of it is not read for one that is not there
    assert 0 < door.shelves.gets <= 30 * MOST_LOOKS


async def test_a_new_key_is_known_at_once() -> None:
    door = Door()
    first = await door.ring.create(GRANT)
    await door.credentials.principal(first.text)
    second = await door.ring.create(GRANT)
    await refusal(door, second.text)
    door.now_s += SOONEST_S + 0.01
    before = door.shelves.looks
    for _ in range(3):
        assert (await door.credentials.principal(second.text)).key_id == second.key_id
    assert (door.shelves.looks, door.shelves.gets) == (before, 1)


async def test_a_revoked_key_stops_soon() -> None:
    door = Door()
    key, _other = await door.ring.create(GRANT), await door.ring.create(GRANT)
    await door.credentials.principal(key.text)
    await door.ring.revoke(key.key_id)
    door.now_s += FRESH_S + 0.01
    assert await refusal(door, key.text) == "this key is not valid here"
    with pytest.raises(NoSuchKey, match=key.key_id):
        await door.ring.revoke(key.key_id)


async def test_the_last_key_revoked_opens_nothing() -> None:
    door = Door()
    assert await door.credentials.principal(None) == LOCAL
    key = await door.ring.create(GRANT)
    door.now_s += FRESH_S + 0.01
    assert await refusal(door, None) == "expected a key, got none"
    await door.ring.revoke(key.key_id)
    door.now_s += FRESH_S + 0.01
    assert await refusal(door, None) == "expected a key, got none"


async def test_a_key_expires() -> None:
    door = Door()
    key = await door.ring.create(GRANT, 10)
    door.now_s += 9
    await door.credentials.principal(key.text)
    door.now_s += 1
    assert await refusal(door, key.text) == "this key has expired"
    assert key.key_id in await door.ring.keys()
    door.now_s += KEPT_EXPIRED_S + 1
    other = await door.ring.create(GRANT)
    assert set(await door.ring.keys()) == {other.key_id}


async def test_a_rotated_key_has_a_grace() -> None:
    door = Door()
    old = await door.ring.create(GRANT, 86_400)
    door.now_s += 3_600
    new = await door.ring.rotate(old.key_id, 60)
    before, after = await door.credentials.principal(old.text), await door.credentials.principal(new.text)
    assert (after.tenant, after.scopes, after.models, after.origins) == (
        before.tenant,
        before.scopes,
        before.models,
        before.origins,
    )
    assert after.expires_at == door.now_s + 86_400
    door.now_s += 61
    assert await refusal(door, old.text) == "this key has expired"
    await door.credentials.principal(new.text)
    with pytest.raises(NoSuchKey, match="expired"):
        await door.ring.rotate(old.key_id, 60)
    with pytest.raises(NoSuchKey, match="not there"):
        await door.ring.rotate("000000000000", 60)


async def test_a_key_that_is_revoked_while_it_is_rotated_stays_revoked() -> None:
    door = Door(shelves=RevokedMeanwhile())
    old = await door.ring.create(GRANT)
    with pytest.raises(NoSuchKey, match="revoked"):
        await door.ring.rotate(old.key_id, 86_400)
    assert await door.ring.keys() == {}


async def test_rotating_gives_no_longer_life() -> None:
    door = Door()
    old = await door.ring.create(GRANT, 10)
    await door.ring.rotate(old.key_id, 3_600)
    assert (await door.credentials.principal(old.text)).expires_at == START_S + 10


async def test_while_the_store_is_down_keys_are_believed_for_a_minute() -> None:
    door = Door()
    key = await door.ring.create(GRANT)
    await door.credentials.principal(key.text)
    door.shelves.down = True
    door.now_s += STALE_S - 1
    await door.credentials.principal(key.text)
    looks = door.shelves.looks
    await door.credentials.principal(key.text)
    assert door.shelves.looks == looks  # no request waits for it now
    door.now_s += 2
    with pytest.raises(StoreDown) as down:
        await door.credentials.principal(key.text)
    assert down.value.retry_after_s == 2.0
    door.shelves.down = False
    door.now_s += RETRY_S + 0.01
    await door.credentials.principal(key.text)


async def test_who_does_not_know_whether_there_are_keys_lets_nobody_in() -> None:
    door = Door()
    door.shelves.down = True
    with pytest.raises(StoreDown):
        await door.credentials.principal(None)


async def test_a_server_that_others_reach_is_never_open() -> None:
    assert await refusal(Door(exposed=True), None) == "expected a key, got none"


async def test_a_record_that_is_not_understood_counts_as_none(caplog: pytest.LogCaptureFixture) -> None:
    door = Door()
    key = await door.ring.create(GRANT)
    door.shelves.shelves[SHELF]["0123456789ab"] = b'{"scopes": ["everything"]}'
    await refusal(door, f"ak_0123456789ab_{'x' * 43}")
    door.now_s += 60
    await door.credentials.principal(key.text)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


@pytest.mark.parametrize("tenant", ["", "a b", "{acme}", "a" * 65])
def test_a_tenant_has_a_plain_name(tenant: str) -> None:
    with pytest.raises(ValueError, match="tenant: expected"):
        Grant(tenant=tenant)


KEY_LOOKING = st.from_regex(r"ak_[0-9a-f]{12}_[A-Za-z0-9_-]{43}", fullmatch=True)


@given(key=st.one_of(HOSTILE, KEY_LOOKING), put_before=st.sampled_from(["", "ak_"]))
@example(key="\udcff", put_before="")
async def test_nothing_else_opens_anything(key: str, put_before: str) -> None:
    door = Door("the-key")
    await door.ring.create(GRANT)
    assert await refusal(door, put_before + key) in ("this key is not valid here", "this client secret is not valid here")


@given(st.data())
async def test_a_key_with_one_character_changed_opens_nothing(data: st.DataObject) -> None:
    door = Door()
    key = (await door.ring.create(GRANT)).text
    place = data.draw(st.integers(0, len(key) - 1))
    other = data.draw(st.characters(codec="utf-8").filter(lambda each: each != key[place]))
    await refusal(door, key[:place] + other + key[place + 1 :])
    await refusal(door, key[:place])
    await refusal(door, key + other)


async def test_two_servers_share_their_keys() -> None:
    shelves = FakeShelves()
    one, other = Door(shelves=shelves), Door(shelves=shelves)
    key = await one.ring.create(GRANT)
    assert await one.credentials.principal(key.text) == await other.credentials.principal(key.text)
