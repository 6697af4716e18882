"""A conversation comes back to a server that does not run what it was held with."""

import pytest

from fakes.house import House, coming, house
from sessions.retention.resume_tokens import SessionLost
from sessions.retention.snapshots import Origin
from sessions.voice.events import Reopened, ResponseDone


async def rests(world: House) -> str:
    """The token of a conversation that is at rest in the store."""
    async with coming(world) as client:
        await client.ask()
        await client.until(ResponseDone)
    await world.sessions.put_down(client.attached.session_id)
    return client.attached.token


async def test_other_weights_go_on_with_it() -> None:
    async with house() as world:
        token = await rests(world)
        async with house(beside=world, name="other", origin=Origin("voice", "2")) as other, coming(other, token) as client:
            assert [item.role for item in (await client.until(Reopened)).items] == ["user", "assistant"]
            assert await client.ask()


async def test_where_its_voice_is_missing_another_one_speaks_and_the_client_knows() -> None:
    async with house() as world:
        token = await rests(world)
        here = house(beside=world, name="other", voices={"amy": "narration"})
        async with here as other, coming(other, token) as client:
            assert (await client.until(Reopened)).config.voice == "amy"
            await client.ask()
            assert (await client.until(ResponseDone)).response.voice == "amy"


async def test_another_pipeline_says_that_it_is_lost_and_leaves_it_to_whoever_can_go_on_with_it() -> None:
    async with house() as world:
        token = await rests(world)
        async with house(beside=world, name="other", origin=Origin("world", "1")) as other:
            for _ in range(2):
                with pytest.raises(
                    SessionLost, match=r"the session is lost: it was made by another model .*; open a new session"
                ):
                    await other.sessions.resume(token).__aenter__()
            assert other.states() == []
        async with coming(world, token) as client:
            assert await client.ask()
