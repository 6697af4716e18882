"""Clients that leave a server in the middle of something, each in its own way and at a moment that chance draws."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeAlias

import aiohttp

import recordings
from bench.conversation import Conversation
from fakes.rtc_client import RtcClient

ASK: tuple[dict[str, Any], ...] = (
    {
        "type": "conversation.item.create",
        "item": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go on."}]},
    },
    {"type": "response.create"},
)
HANDSHAKE_S = 0.08
"""Longer than one takes here."""
ANSWER_S = 0.4
LIMIT_S = 15.0

Leaving: TypeAlias = Callable[[aiohttp.ClientSession, str, Random], Awaitable[None]]
"""Gets the server's URL."""


async def in_the_offer(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    async with RtcClient() as client:
        await _cut_short(_post(http, url, await client.offer()), chance.uniform(0, HANDSHAKE_S))


async def before_it_connects(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    async with RtcClient() as client:
        await _post(http, url, await client.offer())


async def in_the_handshake(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    """ICE, DTLS and the opening of the channel."""
    async with RtcClient() as client:
        await client.call(http, url)
        await asyncio.sleep(chance.uniform(0, HANDSHAKE_S))
        _perhaps_without_a_word(client, chance)


async def in_the_answer(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    async with RtcClient() as client:
        await _ask(client, http, url)
        await asyncio.sleep(chance.uniform(0, ANSWER_S))
        _perhaps_without_a_word(client, chance)


async def in_coming_back(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    async with RtcClient() as gone, RtcClient(channel=False) as back:  # stock aiortc keeps a channel's socket when interrupted
        token = await _ask(gone, http, url)
        gone.vanish()
        await asyncio.sleep(chance.uniform(0, ANSWER_S))
        offer = await back.offer()
        await _cut_short(_come_back(back, http, url, token, offer), chance.uniform(0, 2 * HANDSHAKE_S))


async def from_the_socket(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    """The connection is reset, in an append, a turn or an answer."""
    talk = Conversation(url)
    await talk.__aenter__()
    if chance.random() < 0.5:
        await talk.append(recordings.spoken_commands()[0].pcm() + recordings.to_pcm(recordings.silence(1)))
    else:
        for event in ASK:
            await talk.send(event)
    await asyncio.sleep(chance.uniform(0, ANSWER_S))
    await talk.reset()


async def from_the_socket_that_came_back(http: aiohttp.ClientSession, url: str, chance: Random) -> None:
    talk = Conversation(url)
    await talk.__aenter__()
    created = await talk.until("session.created")
    await talk.reset()
    token = created["resume"]["token"]
    with contextlib.suppress(aiohttp.WSServerHandshakeError):  # the server has waited long enough
        async with http.ws_connect(f"{url}/v1/realtime", params={"resume": token}) as socket:
            for event in ASK:
                await socket.send_json(event)
            await asyncio.sleep(chance.uniform(0, ANSWER_S))


WAYS: tuple[Leaving, ...] = (
    in_the_offer,
    before_it_connects,
    in_the_handshake,
    in_the_answer,
    in_coming_back,
    from_the_socket,
    from_the_socket_that_came_back,
)


async def come_and_go(url: str, count: int, at_once: int, chance: Random) -> None:
    """So many clients; each way is taken about as often as any other."""
    left = iter([WAYS[place % len(WAYS)] for place in range(count)])

    async def some(http: aiohttp.ClientSession) -> None:
        for way in left:
            async with asyncio.timeout(LIMIT_S):
                await way(http, url, chance)

    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as people:
        for _ in range(at_once):
            people.create_task(some(http))


async def _ask(client: RtcClient, http: aiohttp.ClientSession, url: str) -> str:
    """For an answer, which has begun to sound. The token to come back with."""
    await client.call(http, url)
    created = await client.event("session.created")
    for event in ASK:
        client.send(event)
    await client.event("output_audio_buffer.started")
    return created["resume"]["token"]


async def _come_back(client: RtcClient, http: aiohttp.ClientSession, url: str, token: str, offer: str) -> None:
    answer = await _post(http, url, offer, resume=token)
    if answer is not None:
        await client.accept(answer)
        await client.packet()


async def _post(http: aiohttp.ClientSession, url: str, offer: str, **query: str) -> str | None:
    """The answer; None when the server has waited long enough."""
    headers = {"Content-Type": "application/sdp"}
    async with http.post(f"{url}/v1/realtime/calls", data=offer, headers=headers, params=query) as response:
        answer = await response.text()
        assert response.status == 201 or query, answer
        return answer if response.status == 201 else None


async def _cut_short(work: Coroutine[None, None, object], after_s: float) -> None:
    task = asyncio.create_task(work)
    await asyncio.sleep(after_s)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def _perhaps_without_a_word(client: RtcClient, chance: Random) -> None:
    if chance.random() < 0.5:
        client.vanish()
