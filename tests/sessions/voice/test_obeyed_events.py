"""That a client's event was obeyed is not known in the store before what it has brought about is: or another node would take for
done what it knows nothing of, when a client that was slow says it again."""

import pytest

from fakes.house import QUESTION, house
from fakes.voice_client import config, settle
from sessions.retention.client_results import OBEYED
from sessions.voice.attached import Attached
from sessions.voice.commands import CancelResponse, Command, Configure, CreateItem, CreateResponse
from sessions.voice.events import AudioCleared


async def take(attached: Attached, groups: int) -> None:
    """As a client does that is there: each is written down."""
    reading = attached.groups()
    for _ in range(groups):
        attached.note(await anext(reading))


@pytest.mark.parametrize("command", [CreateItem(QUESTION), CreateResponse(), Configure(config(instructions="Sing."))])
async def test_what_nobody_has_been_told_of_is_new_to_another_node(command: Command) -> None:
    async with house() as world, world.sessions.open(config()) as attached:
        await take(attached, groups=1)
        attached.comes_to("again")
        await attached.handle(command, "again")
        assert await attached.answered_before("again") == OBEYED
        attached.note([AudioCleared()])
        await attached.durable()
        await world.store.disown(attached.session_id, "house")
        async with house(beside=world, name="other") as other, other.sessions.resume(attached.token) as elsewhere:
            assert await elsewhere.answered_before("again") is None
            elsewhere.leave()
        await world.ownership.renew()


@pytest.mark.parametrize("command", [CreateItem(QUESTION), CreateResponse(), CancelResponse()])
async def test_what_has_been_told_is_known_there(command: Command) -> None:
    async with house() as world, world.sessions.open(config()) as attached:
        await attached.handle(command, "again")
        await take(attached, groups=1)
        await world.sessions.put_down(attached.session_id)
        async with house(beside=world, name="other") as other, other.sessions.resume(attached.token) as elsewhere:
            assert await elsewhere.answered_before("again") == OBEYED
            elsewhere.leave()


async def test_what_is_refused_is_known_as_refused() -> None:
    async with house() as world, world.sessions.open(config()) as attached:
        attached.comes_to("again")
        attached.refused("again", b"no")
        assert await attached.answered_before("again") == b"no"
        await take(attached, groups=1)
        await attached.durable()
        await settle()
        assert await world.store.result(attached.session_id, "again") == b"no"
        attached.leave()
