"""Pipelines: which stages a request needs, and records that contradict themselves."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engines.bridges.transcript_prompt import TranscriptPrompt
from engines.parameters import Generation
from engines.payloads import Payload
from engines.pipeline import Edge, Output, Pipeline, PipelineError
from engines.pipelines.registry import pipeline
from fakes.pipelines import CASCADE, DIAMOND, Unchanged, graph


def test_only_stages_between_entry_and_outputs_are_active() -> None:
    assert CASCADE.active_stages("ear", ("text",)) == ("ear", "mind")
    assert CASCADE.active_stages("mind", ("audio", "text")) == ("mind", "mouth")
    assert CASCADE.active_stages("mouth", ("audio",)) == ("mouth",)


@pytest.mark.parametrize(
    ("entry", "output", "words"),
    [("nose", "text", "nose"), ("ear", "smell", "smell"), ("mouth", "text", "cannot be reached")],
)
def test_unknown_or_unreachable_names_are_refused(entry: str, output: str, words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        CASCADE.active_stages(entry, (output,))


def test_entries_limit_who_may_be_fed_and_what_is_offered() -> None:
    fed_by_ear = msgspec.structs.replace(CASCADE, entries=("ear",))
    with pytest.raises(PipelineError, match="nobody may feed 'mind'"):
        fed_by_ear.active_stages("mind", ("text",))
    assert CASCADE.offers("text", ["mind"])
    assert not fed_by_ear.offers("text", ["mind"])
    assert fed_by_ear.offers("text", ["ear", "mind"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stages": (*CASCADE.stages, CASCADE.stages[0])}, "twice"),
        ({"outputs": (*CASCADE.outputs, Output("text", "ear"))}, "twice"),
        ({"edges": (*CASCADE.edges, Edge("ear", "nose", Unchanged))}, "nose"),
        ({"edges": (*CASCADE.edges, Edge("mouth", "ear", Unchanged))}, "cycle"),
        ({"edges": (*CASCADE.edges, Edge("ear", "mind", Unchanged))}, "edge 'ear->mind' twice"),
        ({"outputs": (Output("text", "nose"),)}, "nose"),
        ({"entries": ("nose",)}, "nose"),
    ],
)
def test_contradictions_are_refused(change: dict[str, object], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        msgspec.structs.replace(CASCADE, **change).check()


def test_a_graph_may_fan_out_and_join() -> None:
    DIAMOND.check()
    assert DIAMOND.active_stages("top", ("both",)) == ("top", "left", "right", "bottom")
    assert DIAMOND.upstreams("bottom", ("top", "left", "right", "bottom")) == ("left", "right")
    assert DIAMOND.upstreams("top", ("top", "left")) == ()


def test_the_legs_of_a_join_are_those_that_the_request_needs() -> None:
    active = DIAMOND.active_stages("left", ("both",))
    assert active == ("left", "bottom")
    assert DIAMOND.upstreams("bottom", active) == ("left",)
    assert DIAMOND.offers("both", ("left", "bottom"))
    assert not msgspec.structs.replace(DIAMOND, entries=("top",)).offers("both", ("top", "left", "bottom"))


@given(st.lists(st.sets(st.integers(0, 1_000), min_size=1, max_size=3), max_size=8), st.data())
def test_active_stages_are_closed_under_feeding(raw: list[set[int]], data: st.DataObject) -> None:
    record = graph([tuple({source % (target + 1) for source in fed}) for target, fed in enumerate(raw)])
    record.check()
    entry = data.draw(st.sampled_from([stage.name for stage in record.stages]))
    reachable = [output.name for output in record.outputs if _reaches(record, entry, output.stage)]
    outputs = data.draw(st.lists(st.sampled_from(reachable), min_size=1, unique=True))
    active = record.active_stages(entry, outputs)
    assert entry in active
    assert {record.output_stage(output) for output in outputs} <= set(active)
    assert all(bool(record.upstreams(stage, active)) == (stage != entry) for stage in active)
    wanted = {record.output_stage(output) for output in outputs}
    assert all(stage in wanted or set(record.downstream(stage)) & set(active) for stage in active)


def test_the_registry_finds_records_and_names_what_it_has() -> None:
    assert pipeline("fakes.pipelines:CASCADE") is CASCADE
    for wrong in ("song", "fakes.nowhere:CASCADE", "fakes.pipelines:SONG", "fakes.pipelines:Unchanged"):
        with pytest.raises(PipelineError, match=wrong):
            pipeline(wrong)


def test_the_transcript_becomes_one_prompt_and_silence_none() -> None:
    bridge = TranscriptPrompt(Generation())
    assert bridge.feed(Payload(text="Hello")) == bridge.feed(Payload(text=" there.")) == []
    assert bridge.finish() == [Payload(text="Hello there.")]
    assert TranscriptPrompt(Generation()).finish() == []


def _reaches(record: Pipeline, entry: str, target: str) -> bool:
    return target == entry or any(_reaches(record, entry, edge.source) for edge in record.edges if edge.target == target)
