"""What a principal may, and what a tenant has."""

import msgspec
import pytest

from sessions.identity.principal import LOCAL, Principal, Scope, is_name, is_origin
from sessions.identity.tenants import Tenants, TenantSettings
from sessions.store.records import Priority

NARROW = Principal(
    tenant="acme", key_id="1", scopes=frozenset((Scope.SESSIONS,)), kinds=frozenset(("voice",)), models=frozenset(("m",))
)


def test_a_principal_may_what_it_says() -> None:
    assert NARROW.may(Scope.SESSIONS)
    assert not NARROW.may(Scope.REST)
    assert NARROW.may_open("voice")
    assert not NARROW.may_open("robot")
    assert NARROW.may_use("m")
    assert not NARROW.may_use("n")


def test_no_session_lives_longer_than_its_key_allows() -> None:
    assert NARROW.life_s(3_600.0) == 3_600.0
    limited = msgspec.structs.replace(NARROW, longest_session_s=60.0)
    assert (limited.life_s(3_600.0), limited.life_s(30.0)) == (60.0, 30.0)


def test_nobody_sees_what_is_anothers() -> None:
    assert NARROW.sees("acme")
    assert not NARROW.sees("local")
    assert not LOCAL.sees("acme")


def test_without_keys_everything_is_allowed() -> None:
    assert all(LOCAL.may(scope) for scope in Scope)
    assert LOCAL.may_open("anything")
    assert LOCAL.may_use("anything")


@pytest.mark.parametrize("name", ["a", "Acme-2_b", "x" * 64])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize("name", ["", "x" * 65, "a b", "{a}", "a:b", "a\n", "a\0", "ä", "../a", "x" * 1_000_000])
def test_no_names(name: str) -> None:
    assert not is_name(name)


def test_a_tenant_that_is_not_named_has_the_defaults() -> None:
    tenants = Tenants({"acme": TenantSettings(weight=3, sessions=0, priority="batch")})
    assert tenants.of("acme").sessions == 0
    assert tenants.of("other") == TenantSettings(weight=1, sessions=None, priority=None)


def test_who_comes_back_is_never_put_behind() -> None:
    hurried, patient, usual = TenantSettings(priority="control"), TenantSettings(priority="batch"), TenantSettings()
    assert hurried.priority_for(Priority.INTERACTIVE) is Priority.CONTROL
    assert patient.priority_for(Priority.INTERACTIVE) is Priority.BATCH
    assert patient.priority_for(Priority.RESUME) is Priority.RESUME
    assert usual.priority_for(Priority.INTERACTIVE) is Priority.INTERACTIVE


def test_a_tenant_has_a_name() -> None:
    with pytest.raises(ValueError, match=r"tenants: expected names .*got 'a\{b\}'"):
        Tenants({"a{b}": TenantSettings()})


@pytest.mark.parametrize(
    "origin",
    ["https://app.example", "http://app.example:8080", "http://[2001:db8::1]:3000", "https://a.example:80", "app://localhost"],
)
def test_what_a_browser_sends_is_an_origin(origin: str) -> None:
    assert is_origin(origin)


@pytest.mark.parametrize(
    "origin", ["https://App.example", "https://app.example:443", "http://app.example:80", "https://a.example/"]
)
@pytest.mark.parametrize("after", ["", "/path", "?", "#", "\n", " "])
def test_what_no_browser_sends_is_none(origin: str, after: str) -> None:
    assert not is_origin(origin + after)


@pytest.mark.parametrize(
    "origin", ["", "*", "null", "app.example", "https://", "//a", "https://ü.example", "https://u@a.example", "HTTPS://a"]
)
def test_what_is_no_origin_is_none(origin: str) -> None:
    assert not is_origin(origin)
