"""Several requests in one step: none notices the others, whatever the others are."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeAlias, cast

from engines.conformance import ConformanceFault, NotApplicable
from engines.conformance.generation_bench import GenerationBench
from engines.conformance.model_bench import ModelBench, answered, refused
from engines.conformance.outputs import Answers
from engines.models import InvalidInput
from engines.payloads import Array, Payload, Scalar
from engines.worker.foreign import attempt
from engines.worker.model_calls import Outcome

Bench: TypeAlias = ModelBench[Any]
Step: TypeAlias = Callable[[list[tuple[object, Payload]]], list[Outcome]]


def keys_are_pure(bench: GenerationBench) -> None:
    """batch_key gives the same key when asked again, and changes nothing"""
    for sequence, inputs in enumerate(bench.samples.sequences):
        state, answers = bench.open(), Answers()
        for payload in inputs:
            first, again = bench.model.batch_key(state, payload), bench.model.batch_key(state, payload)
            if first != again:
                raise ConformanceFault(f"batch_key: expected {first!r} for the same input again, got {again!r}")
            answers.append(bench.answer(state, payload))
        bench.compare(sequence, [*answers, bench.finish(state)], "asked for its key twice")


def batching_equals_solo(bench: Bench) -> None:
    """requests that share steps get what each gets alone"""
    for sequence, answers in enumerate(side_by_side(bench, range(len(bench.samples.sequences)))):
        bench.compare_within(bench.samples.tolerance, sequence, answers, "batched with others")
    if bench.largest_step == 1:
        raise NotApplicable("its requests never share a step")


def rows_keep_their_order(bench: Bench) -> None:
    """answers come in the order of the rows, whatever that is"""
    order = list(reversed(range(len(bench.samples.sequences))))
    for sequence, answers in zip(order, side_by_side(bench, order), strict=True):
        bench.compare_within(bench.samples.tolerance, sequence, answers, "batched in reverse order")


def wrong_parameters_are_refused(bench: Bench) -> None:
    """open refuses parameters that it cannot serve with InvalidInput"""
    if not bench.samples.refused:
        raise NotApplicable("it takes all that its record allows")
    for parameters in bench.samples.refused:
        _names_its_fault(refused(_opened(bench, parameters), f"open with {parameters!r}"))


def wrong_inputs_are_invalid(bench: Bench) -> None:
    """a wrong input ends its own request with InvalidInput, and harms no other"""
    for number, wrong in enumerate(bench.samples.wrong):
        what = f"wrong input {number}"
        _names_its_fault(refused(bench.outcome(bench.open(), wrong), f"{what} alone"))
        outcome = _beside_good_ones(bench, wrong, f"beside {what}")
        _names_its_fault(refused(outcome, f"{what} among good ones"))


def strange_inputs_raise_nothing_else(bench: Bench) -> None:
    """an input with a field missing, of another type or out of range is answered or InvalidInput"""
    for what, strange in _strange(bench.samples.sequences[0][0]):
        outcome = bench.outcome(bench.open(), strange)
        if isinstance(outcome, Exception) and not isinstance(outcome, InvalidInput):
            raise ConformanceFault(f"{what}: expected InvalidInput or an answer, but the model raised {outcome!r}") from outcome
    bench.compare(0, bench.answers(bench.samples.sequences[0]), "after strange inputs")


def a_raise_costs_the_guilty_row_alone(bench: GenerationBench) -> None:
    """when a step raises, the rows that are run again alone get what they would have got"""
    poison = Payload(cast(str, None), cast(dict[str, Array], Poison()), cast(dict[str, Scalar], Poison()))
    outcome = bench.outcome(bench.open(), poison)
    if not isinstance(outcome, Exception):
        raise ConformanceFault("an input that cannot be read was answered")
    _beside_good_ones(bench, poison, "beside a row that raises", lambda rows: _in_one_step(bench, rows))
    bench.compare(0, bench.answers(bench.samples.sequences[0]), "after a step that raised")


def _in_one_step(bench: GenerationBench, rows: list[tuple[object, Payload]]) -> list[Outcome]:
    """Whatever the key of the last row, if those of the others are equal."""
    keys = [attempt(bench.model.batch_key, state, payload) for state, payload in rows[:-1]]
    return bench.step(rows) if keys[0] == keys[1] else bench.outcomes(rows)


class Poison(Mapping[str, Any]):
    """Cannot be read."""

    def __getitem__(self, name: str) -> NoReturn:
        raise RuntimeError("this input cannot be read")

    def __iter__(self) -> NoReturn:
        raise RuntimeError("this input cannot be read")

    def __len__(self) -> NoReturn:
        raise RuntimeError("this input cannot be read")

    def get(self, name: str, default: object = None) -> NoReturn:
        raise RuntimeError("this input cannot be read")


def side_by_side(bench: Bench, sequences: range | list[int]) -> list[Answers]:
    """Input 0 of all in one step (or one for each key), then input 1 of all that have one, …"""
    inputs = [bench.samples.sequences[sequence] for sequence in sequences]
    states = [bench.open() for _ in inputs]
    answers: list[Answers] = [[] for _ in inputs]
    for place in range(max(map(len, inputs))):
        members = [row for row, of_row in enumerate(inputs) if place < len(of_row)]
        outcomes = bench.outcomes([(states[row], inputs[row][place]) for row in members])
        for row, outcome in zip(members, outcomes, strict=True):
            answers[row].append(answered(outcome))
    return [[*of_row, bench.finish(state)] for of_row, state in zip(answers, states, strict=True)]


def _beside_good_ones(bench: Bench, bad: Payload, when: str, step: Step | None = None) -> Outcome:
    """The bad row's outcome, as the last row of a step of two good requests, which then go on."""
    inputs = bench.samples.sequences[0]
    good, guilty = [bench.open(), bench.open()], bench.open()
    *firsts, outcome = (step or bench.outcomes)([*((state, inputs[0]) for state in good), (guilty, bad)])
    for state, first in zip(good, firsts, strict=True):
        bench.compare_within(bench.samples.tolerance, 0, [answered(first), bench.answer(state, inputs[1])], when)
    for state in (*good, guilty):
        bench.model.close(state)
    return outcome


def _strange(good: Payload) -> Iterator[tuple[str, Payload]]:
    """`good`, spoilt in one place each, and said how."""
    yield "an empty payload", Payload()
    for name, array in good.arrays.items():
        without = {other: value for other, value in good.arrays.items() if other != name}
        yield f"no array {name}", Payload(good.text, without, good.attributes)
        bent = {
            "of a type that it never has": Array(
                "complex128", (len(array.data) // 16,), array.data[: len(array.data) // 16 * 16]
            ),
            "without elements": Array(array.dtype, (0,) * len(array.shape), array.data[:0]),
            "of one dimension more": Array(array.dtype, (1, *array.shape), array.data),
        }
        for how, spoilt in bent.items():
            yield f"array {name} {how}", Payload(good.text, {**good.arrays, name: spoilt}, good.attributes)
    for name in good.attributes:
        rest = {other: value for other, value in good.attributes.items() if other != name}
        yield f"no attribute {name}", Payload(good.text, good.arrays, rest)
        for value in ("strange", "", -1, 2**62, 1e300, float("nan"), True):
            yield f"attribute {name}={value!r}", Payload(good.text, good.arrays, {**good.attributes, name: value})


def _opened(bench: Bench, parameters: object) -> Outcome:
    state = attempt(bench.model.open, cast(Any, parameters))
    if isinstance(state, Exception):
        return state
    bench.model.close(state)
    return []


def _names_its_fault(error: InvalidInput) -> None:
    sentence = str(error)
    if ":" not in sentence or "expected" not in sentence:
        raise ConformanceFault(f"InvalidInput: expected a sentence like 'field: expected …, got …', got {sentence!r}")
