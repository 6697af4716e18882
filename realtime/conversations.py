"""The sessions of this gateway, put together with the store that they rest on."""

import time
from collections.abc import Callable
from typing import NamedTuple

from engines.requests import Graph
from realtime.catalogue import Catalogue
from realtime.openai_realtime.known_sessions import KnownSessions
from sessions.admission.admission import Admission
from sessions.admission.node import Node
from sessions.billing import Billing
from sessions.retention.ownership import Ownership
from sessions.retention.sealing import Sealing
from sessions.retention.settings import SessionLimits
from sessions.retention.snapshots import Binding, Origin, Snapshots
from sessions.store.interface import Store
from sessions.voice.sessions import VoiceSessions
from sessions.voice.settings import VoiceSettings


class Conversations(NamedTuple):
    """As the application's context names them."""

    known_sessions: KnownSessions
    ownership: Ownership
    voice_sessions: VoiceSessions


def conversations_of(
    node: Node,
    admission: Admission,
    billing: Billing,
    graph: Graph,
    catalogue: Catalogue,
    voice: VoiceSettings,
    limits: SessionLimits,
    store: Store,
    origin: Origin,
    clock: Callable[[], float] = time.monotonic,
) -> Conversations:
    """Needs a running loop. `origin` is what their state is made by here. `clock` is monotonic, in seconds."""
    known = KnownSessions()
    ownership = Ownership(store, node.identity.node, node.leases.lease_s, clock, sealing=Sealing.of_environment())
    sessions = VoiceSessions(
        graph,
        voice,
        catalogue.voices,
        known.begin,
        limits=limits,
        ownership=ownership,
        admission=admission,
        snapshots=Snapshots.of_environment(origin, Binding.PIPELINE, limits.snapshots),
        billing=billing,
        clock=clock,
    )
    node.on_order(sessions.heed)
    return Conversations(known, ownership, sessions)
