"""What a gateway asks of the DIFFUSION stage `steps`, and what it is told."""

from collections.abc import Mapping

from engines.chunks import Chunk
from engines.connectors.contents import Inline
from engines.messages.to_gateway import StageReport
from engines.parameters import Denoising
from engines.payloads import Payload, Scalar
from fakes.gateway import FakeGateway, payload


def submit(gateway: FakeGateway, name: str, **options: object) -> None:
    gateway.submit(name, "steps", parameters=Denoising(), **options)  # pyright: ignore[reportArgumentType]  as `submit` itself


def push(gateway: FakeGateway, name: str, text: str = "", *, final: bool = False, **attributes: Scalar) -> None:
    push_with(gateway, name, attributes, text, final=final)


def push_with(gateway: FakeGateway, name: str, attributes: dict[str, Scalar], text: str = "", *, final: bool = False) -> None:
    """An input of this text (the request's name unless another is given)."""
    gateway.hand(name, Inline(Payload(text or name, attributes=attributes)), stage="steps", final=final)


def order(gateway: FakeGateway, *names: str, **attributes: Scalar) -> None:
    """One-shot requests."""
    for name in names:
        submit(gateway, name)
        push_with(gateway, name, attributes, final=True)


async def told(gateway: FakeGateway, name: str) -> Mapping[str, Scalar]:
    return payload(await gateway.chunk(name)).attributes


async def ends(gateway: FakeGateway, name: str) -> Chunk:
    """The request has one output; the final chunk comes after it."""
    output, final = await gateway.chunks(name)
    assert payload(final) == Payload()
    return output


async def counted(gateway: FakeGateway) -> StageReport:
    report = await gateway.heard()
    return next(stage for stage in report.stages if stage.stage == "steps")
