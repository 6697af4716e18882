import pytest

from engines.scaffold.registration import CannotRegister, with_entry

SOURCE = """# above
FIRST: dict[str, int] = {
    "one": 1,  # }
}

SECOND: dict[str, int] = {"two": 2}
THIRD: dict[str, int] = {
}
FOURTH: dict[str, int] = {}
"""


def test_an_entry_becomes_the_last_and_all_else_stays():
    assert with_entry(SOURCE, "FIRST", '    "three": 3,\n') == SOURCE.replace("# }\n", '# }\n    "three": 3,\n')


@pytest.mark.parametrize(("name", "empty"), [("THIRD", "{\n}"), ("FOURTH", "{}")])
def test_an_empty_dict_gets_its_first(name: str, empty: str):
    before, after = (f"{name}: dict[str, int] = {value}\n" for value in (empty, '{\n    "three": 3,\n}'))
    assert with_entry(SOURCE, name, '    "three": 3,\n') == SOURCE.replace(before, after)


@pytest.mark.parametrize(("name", "sentence"), [("SECOND", "ends with a line of its own"), ("FIFTH", "found none")])
def test_what_cannot_be_extended_is_named(name: str, sentence: str):
    with pytest.raises(CannotRegister, match=f"{name}: expected .*{sentence}"):
        with_entry(SOURCE, name, '    "three": 3,\n')
