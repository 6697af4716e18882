"""What is said to whoever asked for a job that is not done: a sentence with the numbers."""


def too_late(calls: int, call_s: float, left_s: float) -> str:
    """`calls` of `call_s` at best are to come, and `left_s` is left."""
    if left_s <= 0:
        return f"the deadline passed {_ms(-left_s)} ms ago with {_calls(calls)} to come"
    each = "takes" if calls == 1 else f"take {_ms(call_s)} ms each,"
    return (
        f"cannot be done in time: {_calls(calls)} to come {each} {_ms(calls * call_s)} ms even alone, {_ms(left_s)} ms are left"
    )


def too_much(service_class: str, work_s: float, part: float, left_s: float) -> str:
    """`work_s` of its class, its own included, is due within `left_s`, of which the class can count on `part`."""
    return (
        f"overload: what is due before it in class {service_class} and itself need {_ms(work_s)} ms, "
        f"{_ms(part * left_s)} of the {_ms(left_s)} ms left are free for them"
    )


def _calls(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f}"
