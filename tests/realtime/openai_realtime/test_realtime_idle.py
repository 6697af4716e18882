"""`idle_timeout_ms`, on the wire."""

from fakes.edge import Edge
from fakes.graph import silence
from fakes.voice_client import settle


async def test_a_silent_user_is_spoken_to(edge: Edge) -> None:
    async with edge.connect() as client:
        detection = {"type": "server_vad", "idle_timeout_ms": 1_000}
        change = {"type": "realtime", "output_modalities": ["text"], "audio": {"input": {"turn_detection": detection}}}
        await client.send("session.update", session=change)
        shown = (await client.until("session.updated"))["session"]["audio"]["input"]["turn_detection"]
        assert shown["idle_timeout_ms"] == 1_000
        await client.write("Hello")
        edge.graph.hold("text").step(1)
        await client.send("response.create")
        await client.until("response.output_text.delta")
        await client.append(silence(320))
        await client.write("And?")
        await client.until("conversation.item.done")
        await settle()
        edge.graph.hold("text").release()
        await client.until("response.done")
        await client.append(silence(1_400))
        timeout = await client.until("input_audio_buffer.timeout_triggered")
        assert 900 <= timeout["audio_end_ms"] - timeout["audio_start_ms"] <= 1_400
        assert (await client.until("input_audio_buffer.committed"))["item_id"] == timeout["item_id"]
        assert (await client.until("response.done"))["response"]["status"] == "completed"
