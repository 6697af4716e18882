"""Credentials of one server over shelves that a test holds, on a clock that a test moves."""

from fakes.shelves import FakeShelves
from sessions.identity.api_keys import ApiKeys
from sessions.identity.client_secrets import ClientSecrets
from sessions.identity.credentials import Credentials
from sessions.identity.key_ring import KeyRing
from sessions.identity.signing_keys import SharedSigningKeys

START_S = 1_800_000_000.0


class Door:
    """`now_s` is both clocks of it: the monotonic one, and the wall's."""

    def __init__(self, environment_key: str | None = None, *, exposed: bool = False, shelves: FakeShelves | None = None) -> None:
        self.now_s = START_S
        self.shelves = shelves or FakeShelves()
        self.ring = KeyRing(self.shelves, self.clock)
        self.signing = SharedSigningKeys(self.shelves, self.clock, self.clock)
        self.keys = ApiKeys(self.shelves, self.clock, self.clock)
        self.secrets = ClientSecrets(self.signing, self.clock, environment_key)
        self.credentials = Credentials(environment_key, self.keys, self.secrets, exposed=exposed)

    def clock(self) -> float:
        return self.now_s
