"""Films asked for at an edge without the stock client."""

import asyncio
from typing import Any

from fakes.edge import Edge


async def posted(edge: Edge, status: int = 200, **body: object) -> dict[str, Any]:
    usual = {"prompt": "a cat", "size": "32x32"} | ({} if "seconds" in body else {"frames": 2})
    async with edge.http.post(f"{edge.url}/v1/videos", json=usual | body) as answer:
        assert answer.status == status, await answer.text()
        told = await answer.json()
        return told if status == 200 else told["error"]


async def told(edge: Edge, job_id: str, status: str) -> dict[str, Any]:
    """When it is in this state."""
    async with asyncio.timeout(10):
        while True:
            async with edge.http.get(f"{edge.url}/v1/videos/{job_id}") as answer:
                video = await answer.json()
            if video["status"] == status:
                return video
