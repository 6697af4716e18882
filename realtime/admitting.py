"""This gateway's part in admission, put together from its deployment and its place."""

import logging
from collections.abc import AsyncIterator, Callable, Mapping

from aiohttp import web

from realtime.calibration.machine import machine_words
from realtime.context import CONTEXT
from realtime.deployment import Deployment
from realtime.place import Place
from sessions.admission.admission import Admission
from sessions.admission.node import Leases, Node, NodeIdentity
from sessions.admission.seats import VOICE, Seats
from sessions.admission.settings import CalibratedSeats
from sessions.identity.tenants import Tenants
from sessions.store.interface import AdmissionStore
from sessions.voice.settings import VoiceSettings

log = logging.getLogger(__name__)

PCM_BYTES_PER_MS = 48
BESIDES_SOUND_MB = 4
"""Of a conversation: items, the journal, what waits to be told."""


def admission_of(
    deployment: Deployment, place: Place, store: AdmissionStore, granted: Callable[[], Mapping[str, int]]
) -> tuple[Node, Admission]:
    """`granted`: the slots that the workers grant now, by stage."""
    _check_machine(deployment.seats)
    identity = NodeIdentity(node=place.node, host=place.host)
    limits, state_mb = deployment.limits, {VOICE: largest_voice_mb(deployment.voice)}
    seats = Seats(identity, deployment.admission, limits.maximum_sessions, deployment.seats, granted, state_mb)
    lease_s, grace_s = deployment.store.lease_s, limits.detached_grace_s
    leases = Leases(lease_s=lease_s, return_s=min(lease_s, grace_s), grace_s=grace_s)
    node = Node(store, identity, seats.capacity, seats.reserve, leases=leases)
    return node, Admission(node, deployment.admission, Tenants(deployment.tenants), seats)


def _check_machine(calibrated: Mapping[str, CalibratedSeats]) -> None:
    here = machine_words()
    for kind, seats in calibrated.items():
        if seats.machine not in ("", here):
            log.warning("seats.%s: found on %s, but this is %s: run `antiphon calibrate`", kind, seats.machine, here)


def largest_voice_mb(settings: VoiceSettings) -> float:
    """What a conversation may hold in this process: sound that was sent ahead, mostly."""
    return settings.maximum_buffer_ms * PCM_BYTES_PER_MS / (1 << 20) + BESIDES_SOUND_MB


async def run_node(app: web.Application) -> AsyncIterator[None]:
    """A cleanup context of the application: the node outlives all that has a seat."""
    async with app[CONTEXT].node.running():
        yield
