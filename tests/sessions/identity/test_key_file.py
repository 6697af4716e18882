"""Keys in a file: whole at every moment, its owner's alone, and no server trusts one that others can write."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from sessions.identity.api_keys import ApiKeys
from sessions.identity.key_file import KeyFile, KeyFileRefused
from sessions.identity.key_ring import Grant, KeyRing


async def test_there_need_be_no_file(tmp_path: Path) -> None:
    keys = KeyFile(tmp_path / "none" / "keys.json")
    assert await keys.shelf("api_keys") == {}
    assert not await keys.remove("api_keys", "a")


async def test_what_is_put_stays(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.json"
    keys = KeyFile(path)
    assert await keys.put("a", "x", b'{"n":1}') == b'{"n":1}'
    assert await keys.put("a", "x", b'{"n":2}', only_new=True) == b'{"n":1}'
    await keys.put("b", "y", b"3")
    assert await KeyFile(path).shelf("b") == {"y": b"3"}
    assert await keys.replace("b", "y", b"4")
    assert await keys.get("b", "y") == b"4"
    assert await keys.get("b", "z") is await keys.get("c", "y") is None
    assert not await keys.replace("b", "z", b"5")
    assert await KeyFile(path).shelf("b") == {"y": b"4"}
    assert await keys.remove("a", "x")
    assert not await keys.remove("a", "x")
    assert await keys.shelf("a") == {}


async def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / "keys.json"
    old = os.umask(0)
    try:
        await KeyFile(path).put("a", "x", b"1")
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    await asyncio.gather(*(KeyFile(path).put("a", f"k{number}", b"1") for number in range(40)))
    assert len(await KeyFile(path).shelf("a")) == 40
    assert set(os.listdir(tmp_path)) == {"keys.json", "keys.json.lock"}


@pytest.mark.parametrize("mode", [0o602, 0o620, 0o666])
async def test_what_others_can_write_is_not_believed(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys.json"
    await KeyFile(path).put("a", "x", b"1")
    path.chmod(mode)
    with pytest.raises(KeyFileRefused, match="0600"):
        await KeyFile(path).shelf("a")


@pytest.mark.parametrize("content", ["", "[]", '{"api_keys": 3}', "{", "\0"])
async def test_what_is_no_file_of_keys_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(content)
    with pytest.raises(KeyFileRefused, match="no file of keys"):
        await KeyFile(path).shelf("a")
    with pytest.raises(KeyFileRefused):
        await KeyFile(path).put("a", "x", b"1")
    assert path.read_text() == content


async def test_a_folder_in_its_place_is_told(tmp_path: Path) -> None:
    with pytest.raises(KeyFileRefused, match="cannot be read"):
        await KeyFile(tmp_path).shelf("a")
    (tmp_path / "file").write_text("")
    with pytest.raises(KeyFileRefused, match="cannot be written"):
        await KeyFile(tmp_path / "file" / "keys.json").put("a", "x", b"1")


async def test_keys_live_in_it(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "keys.json")
    key = await KeyRing(file).create(Grant(tenant="acme"), 60)
    keys = ApiKeys(file, lambda: 0.0, lambda: 0.0)
    assert (await keys.principal(key.text)).tenant == "acme"
    assert key.text not in (tmp_path / "keys.json").read_text()
