"""What of a conversation reaches the model."""

from hypothesis import given
from hypothesis import strategies as st

from sessions.voice.conversation import Entry
from sessions.voice.history import forget_what_left, messages_of
from sessions.voice.items import InputAudio, InputText, Item, OutputText, Role
from sessions.voice.settings import VoiceSettings

SMALL = VoiceSettings(maximum_context_tokens=100, context_kept_share=0.5, characters_per_token=1.0)


def entry(role: Role, text: str) -> Entry:
    part = OutputText(text) if role == "assistant" else InputText(text)
    return Entry(Item(id="x", role=role, status="completed", parts=(part,)))


def turns(count: int, length: int = 10) -> list[Entry]:
    return [entry(role, f"{number}{'.' * (length - 1)}") for number in range(count) for role in ("user", "assistant")]


def test_everything_fits() -> None:
    messages = messages_of("Be brief.", turns(2), SMALL)
    assert [message.role for message in messages] == ["system", "user", "assistant", "user", "assistant"]


def test_no_instructions_no_system_message() -> None:
    assert [message.role for message in messages_of("", turns(1), SMALL)] == ["user", "assistant"]


def test_items_without_words_are_left_out() -> None:
    silent = Entry(Item(id="x", role="user", status="completed", parts=(InputAudio(None, 500),)))
    assert messages_of("", [silent, *turns(1)], SMALL) == messages_of("", turns(1), SMALL)


def test_over_budget_whole_turns_leave_from_the_front_and_stay_away() -> None:
    entries = turns(4)  # 16 a message, 32 a turn, 128 in all
    messages = messages_of("", entries, SMALL)
    assert [message.content[0] for message in messages] == ["3", "3"]
    assert messages_of("", entries, SMALL) == messages


def test_the_prompt_only_grows_between_two_reductions() -> None:
    entries: list[Entry] = []
    reductions, before = 0, messages_of("Be brief.", entries, SMALL)
    for turn in range(30):
        entries += [entry("user", f"{turn:10}"), entry("assistant", f"{turn:10}")]
        forget_what_left("Be brief.", entries, SMALL)
        after = messages_of("Be brief.", entries, SMALL)
        reductions += after[: len(before)] != before
        before = after
    assert reductions <= 15


def test_the_last_turn_is_always_kept() -> None:
    entries = [*turns(2), entry("user", "x" * 500)]
    messages = messages_of("Be brief.", entries, SMALL)
    assert [message.role for message in messages] == ["system", "user"]


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system"]), st.integers(0, 60)), max_size=30))
def test_any_conversation_fits_or_is_its_last_turn(shape: list[tuple[Role, int]]) -> None:
    entries = [entry(role, "x" * length) for role, length in shape]
    messages = messages_of("Be brief.", entries, SMALL)
    cost = sum(len(message.content) + 6 for message in messages)
    users = [message for message in messages[1:] if message.role == "user"]
    assert cost <= 100 or len(users) <= 1


def test_what_is_asked_under_other_instructions_forgets_nothing() -> None:
    entries = turns(2)
    whole = messages_of("Be brief.", entries, SMALL)
    assert len(messages_of("Be long. " * 200, entries, SMALL)) < len(whole)
    assert messages_of("Be brief.", entries, SMALL) == whole
