"""Client secrets: what they carry, how long they last, and that nobody else can make or change one."""

import base64
import random
import zlib

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fakes.doors import START_S, Door
from fakes.hostile import HOSTILE
from fakes.shelves import FakeShelves
from sessions.identity.api_keys import NotValid
from sessions.identity.client_secrets import LONGEST_CHARACTERS, NotGranted, TooLong, Wish
from sessions.identity.credentials import ENVIRONMENT
from sessions.identity.key_ring import Grant
from sessions.identity.principal import LOCAL, Principal, Scope
from sessions.identity.shelf_view import FRESH_S
from sessions.identity.signing_keys import PERIOD_S, OwnSigningKeys, SharedSigningKeys

NARROW = Principal(
    tenant="acme",
    key_id="0123456789ab",
    scopes=frozenset((Scope.SESSIONS, Scope.ADMIN)),
    kinds=frozenset(("voice", "robot")),
    models=frozenset(("a", "b")),
    origins=("https://a.example", "https://b.example"),
    expires_at=int(START_S) + 1_000,
    longest_session_s=600.0,
)


async def refusal(door: Door, secret: str) -> str:
    with pytest.raises(NotValid) as refused:
        await door.credentials.principal(secret)
    return str(refused.value)


async def test_a_secret_carries_what_it_allows() -> None:
    door = Door()
    secret, expires_at = await door.secrets.make(
        NARROW,
        Wish(
            seconds=600,
            session=b'{"instructions":"Be brief."}',
            kinds=frozenset(("voice",)),
            models=frozenset(("a",)),
            origins=("https://a.example",),
            longest_session_s=3_600.0,
        ),
    )
    assert secret.startswith("ek_")
    assert await door.secrets.principal(secret) == Principal(
        tenant="acme",
        key_id="0123456789ab",
        scopes=frozenset((Scope.SESSIONS,)),
        kinds=frozenset(("voice",)),
        models=frozenset(("a",)),
        origins=("https://a.example",),
        expires_at=expires_at,
        longest_session_s=600.0,
        is_secret=True,
        session=b'{"instructions":"Be brief."}',
    )


async def test_what_is_not_wished_is_as_its_maker_has_it() -> None:
    door = Door()
    principal = await door.secrets.principal((await door.secrets.make(NARROW, Wish(seconds=10)))[0])
    assert (principal.kinds, principal.models, principal.origins) == (NARROW.kinds, NARROW.models, NARROW.origins)
    assert principal.scopes == {Scope.SESSIONS}


@pytest.mark.parametrize(
    ("field", "wish"),
    [
        ("scopes", {"scopes": frozenset((Scope.ADMIN,))}),
        ("scopes", {"scopes": frozenset((Scope.REST,))}),
        ("kinds", {"kinds": frozenset(("voice", "rollout"))}),
        ("models", {"models": frozenset(("c",))}),
        ("origins", {"origins": ("https://c.example",)}),
        ("origins", {"origins": ()}),
    ],
)
async def test_a_secret_allows_no_more_than_its_maker(field: str, wish: dict[str, object]) -> None:
    with pytest.raises(NotGranted, match=f"^{field}: ") as refused:
        await Door().secrets.make(NARROW, msgspec.convert({"seconds": 60} | wish, Wish))
    assert refused.value.field == field


async def test_not_even_an_administrators_is_one() -> None:
    with pytest.raises(NotGranted, match="scopes"):
        await Door().secrets.make(LOCAL, Wish(seconds=60, scopes=frozenset(Scope)))


async def test_a_secret_is_good_until_it_expires_and_as_often_as_one_likes() -> None:
    door = Door("the-key")
    secret, expires_at = await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert expires_at == START_S + 600
    door.now_s += 599
    for _ in range(3):
        await door.credentials.principal(secret)
    door.now_s += 1
    assert await refusal(door, secret) == "this client secret has expired"


async def test_and_not_longer_than_its_maker() -> None:
    assert (await Door().secrets.make(NARROW, Wish(seconds=7_200)))[1] == NARROW.expires_at


async def test_what_a_revoked_key_has_made_ends_with_it() -> None:
    door = Door()
    key = await door.ring.create(Grant(tenant="acme"))
    secret, _ = await door.secrets.make(await door.credentials.principal(key.text), Wish(seconds=600))
    assert (await door.credentials.principal(secret)).tenant == "acme"
    await door.ring.revoke(key.key_id)
    door.now_s += FRESH_S + 0.01
    assert await refusal(door, secret) == "the key that made this client secret is no longer valid"


async def test_what_an_open_server_has_made_ends_when_it_asks_for_keys() -> None:
    door = Door()
    secret, _ = await door.secrets.make(LOCAL, Wish(seconds=600))
    assert (await door.credentials.principal(secret)).tenant == "local"
    await door.ring.create(Grant(tenant="acme"))
    door.now_s += FRESH_S + 0.01
    await refusal(door, secret)
    await refusal(Door(shelves=door.shelves), (await door.secrets.make(ENVIRONMENT, Wish(seconds=600)))[0])


async def test_all_servers_know_each_others() -> None:
    shelves = FakeShelves()
    one, other = Door("the-key", shelves=shelves), Door("the-key", shelves=shelves)
    secrets = [(await door.secrets.make(ENVIRONMENT, Wish(seconds=600)))[0] for door in (one, other)]
    assert len({secret.partition(".")[0] for secret in secrets}) == 1
    for secret in secrets:
        assert await one.credentials.principal(secret) == await other.credentials.principal(secret)


async def test_signing_keys_change_each_week_and_the_last_one_is_believed() -> None:
    door = Door("the-key")
    door.now_s += PERIOD_S - door.now_s % PERIOD_S - 60
    secret, _ = await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    door.now_s += 120
    other, _ = await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert secret.partition(".")[0] != other.partition(".")[0]
    await door.credentials.principal(secret)
    await door.credentials.principal(other)
    door.now_s += PERIOD_S
    await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert len(door.shelves.shelves["signing_keys"]) == 2
    assert await refusal(door, secret) == "this client secret is not valid here"


async def test_a_server_whose_clock_is_off_disturbs_nobody() -> None:
    shelves = FakeShelves()
    right, early = Door("the-key", shelves=shelves), Door("the-key", shelves=shelves)
    right.now_s += PERIOD_S - right.now_s % PERIOD_S - 60
    early.now_s = right.now_s + 300
    secrets = [(await door.secrets.make(ENVIRONMENT, Wish(seconds=600)))[0] for door in (right, early, right)]
    right.now_s += 2
    for secret in secrets:
        await right.credentials.principal(secret)
        await early.credentials.principal(secret)


async def test_own_keys_end_with_the_process_or_are_set() -> None:
    one, other = OwnSigningKeys(), OwnSigningKeys()
    assert (await one.current()) != (await other.current())
    assert await one.find((await other.current()).key_id) is None
    new, old = "n" * 32, "o" * 32
    set_before, set_now = OwnSigningKeys((old,)), OwnSigningKeys((new, old))
    assert (await set_now.current()) != (await set_before.current())
    assert await set_now.find((await set_before.current()).key_id) == await set_before.current()
    with pytest.raises(ValueError, match="at least 32"):
        OwnSigningKeys(("short",))
    assert new not in repr(await set_now.current())


async def test_long_instructions_fit_and_longer_ones_are_refused() -> None:
    door = Door()
    words = " ".join(f"word{number % 97}" for number in range(1_500)).encode()
    secret, _ = await door.secrets.make(LOCAL, Wish(seconds=600, session=words))
    assert len(secret) <= LONGEST_CHARACTERS
    assert (await door.credentials.principal(secret)).session == words
    with pytest.raises(TooLong, match=f"{LONGEST_CHARACTERS} characters"):
        await door.secrets.make(LOCAL, Wish(seconds=600, session=random.Random(1).randbytes(4_500)))


SIGNED_LOOKING = st.builds("w{}.{}.{}".format, st.integers(0, 5_000), st.text(), st.text())


@given(st.one_of(HOSTILE, SIGNED_LOOKING))
@example("")
async def test_forged_ones_open_nothing(text: str) -> None:
    door = Door("the-key")
    await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert await refusal(door, f"ek_{text}") == "this client secret is not valid here"


@given(st.integers(0, 10_000), st.characters(codec="utf-8"))
async def test_one_that_is_changed_or_cut_opens_nothing(where: int, other: str) -> None:
    door = Door("the-key")
    secret, _ = await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    place = 3 + where % (len(secret) - 3)
    changed = secret[:place] + other + secret[place + 1 :]
    for wrong in (changed, secret[:place], secret + other, secret[:place] + other + secret[place:]):
        if wrong != secret:
            assert "not valid" in await refusal(door, wrong)


async def test_parts_of_two_secrets_make_no_third() -> None:
    door = Door("the-key")
    (one, _), (other, _) = [await door.secrets.make(ENVIRONMENT, Wish(seconds=seconds)) for seconds in (60, 7_200)]
    await refusal(door, ".".join((*other.split(".")[:2], one.split(".")[2])))


async def test_one_of_another_installation_opens_nothing() -> None:
    secret, _ = await Door("the-key").secrets.make(ENVIRONMENT, Wish(seconds=600))
    here = Door("the-key")
    await here.secrets.make(ENVIRONMENT, Wish(seconds=600))
    await refusal(here, secret)


async def test_what_an_older_version_has_signed_opens_nothing() -> None:
    door = Door("the-key")
    key = await SharedSigningKeys(door.shelves, door.clock, door.clock).current()
    for claims in ("bm90aGluZw", "b", "", base64.urlsafe_b64encode(zlib.compress(b"\x93123")).decode()):
        signed = f"ek_{key.key_id}.{claims}"
        await refusal(door, f"{signed}.{base64.urlsafe_b64encode(key.signature(signed)).decode().rstrip('=')}")


@pytest.mark.parametrize("after", ["another-key", "the-ke", "", None])
async def test_what_the_key_in_the_environment_has_made_ends_when_that_is_another_one(after: str | None) -> None:
    shelves = FakeShelves()
    before = Door("the-key", shelves=shelves)
    secret, _ = await before.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert (await before.credentials.principal(secret)).is_secret
    assert (await Door("the-key", shelves=shelves).credentials.principal(secret)).is_secret
    await refusal(Door(after, shelves=shelves), secret)
    assert "the-key" not in str(zlib.decompress(base64.urlsafe_b64decode(secret.split(".")[1] + "===")))


async def test_what_made_keys_have_made_does_not_end_with_the_key_in_the_environment() -> None:
    shelves = FakeShelves()
    before, after = Door("the-key", shelves=shelves), Door("another-key", shelves=shelves)
    made = await before.ring.create(Grant(tenant="acme"))
    secret, _ = await before.secrets.make(await before.credentials.principal(made.text), Wish(seconds=600))
    assert (await after.credentials.principal(secret)).tenant == "acme"


async def test_a_key_of_other_bytes_than_text_makes_secrets_too() -> None:
    door = Door("cl\udce9")
    secret, _ = await door.secrets.make(ENVIRONMENT, Wish(seconds=600))
    assert (await door.credentials.principal(secret)).is_secret
