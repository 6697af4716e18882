"""What a running server says about itself."""

import aiohttp

from bench.server import Server, until


async def metric(server: Server, name: str) -> dict[str, float]:
    """The samples of one metric, by stage."""
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    samples = [line.rsplit(" ", 1) for line in lines if line.startswith(f"{name}{{")]
    return {labels.split('stage="')[1].split('"')[0]: float(value) for labels, value in samples}


async def value(server: Server, name: str) -> float:
    """A metric without labels."""
    async with aiohttp.ClientSession() as http, http.get(f"{server.url}/metrics") as answer:
        lines = (await answer.text()).splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


async def counters(server: Server) -> dict[str, float]:
    """What each engine has produced so far."""
    return await metric(server, "antiphon_stage_produced_total")


async def active(server: Server) -> float:
    """Requests that any engine still holds."""
    return sum((await metric(server, "antiphon_stage_active")).values())


async def settle(server: Server) -> None:
    """Until the engines hold nothing."""

    async def idle() -> bool:
        return await active(server) == 0

    await until(idle)
