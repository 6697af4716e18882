"""A package index and file server on localhost whose transfers break as scripted."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec


class Fault(msgspec.Struct, frozen=True):
    """What goes wrong with one answer: an error status, or `cut_after_bytes` of the body, or Range is not understood."""

    status: int = 0
    cut_after_bytes: int = -1
    ignore_range: bool = False


class Asked(msgspec.Struct, frozen=True):
    path: str
    range: str


class FakeRegistry:
    """Serves `files` by path. Each GET of a file takes the next fault of its list, until that is empty."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[Fault]] = {}
        self.asked: list[Asked] = []

    def publish_wheel(self, name: str, version: str, content: dict[str, bytes], *, lies: bool = False) -> str:
        """An index page for pip and the wheel's metadata beside it; returns the wheel's path. `lies`: with a wrong sha256."""
        module = name.replace("-", "_")
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
        wheel = _wheel(f"{module}-{version}.dist-info", metadata, content)
        path = f"/files/{module}-{version}-py3-none-any.whl"
        sha256 = hashlib.sha256(b"" if lies else wheel).hexdigest()
        self.files[path] = wheel
        self.files[f"{path}.metadata"] = metadata
        known = f"sha256={hashlib.sha256(metadata).hexdigest()}"
        link = f'<a href="{path}#sha256={sha256}" data-core-metadata="{known}" data-dist-info-metadata="{known}">'
        self.files[f"/simple/{name}/"] = f"<!DOCTYPE html><html><body>{link}{path.rsplit('/', 1)[1]}</a></body></html>".encode()
        return path

    def ranges_asked(self, path: str) -> list[str]:
        return [asked.range for asked in self.asked if asked.path == path]

    def next_fault(self, path: str) -> Fault:
        faults = self.faults.get(path, [])
        return faults.pop(0) if faults else Fault()


@contextmanager
def fake_registry() -> Generator[FakeRegistry]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    registry = _Handler.registry = FakeRegistry(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    registry: FakeRegistry

    def do_GET(self) -> None:
        asked = Asked(self.path, self.headers.get("Range", ""))
        self.registry.asked.append(asked)
        body = self.registry.files.get(self.path)
        fault = self.registry.next_fault(self.path)
        if body is None or fault.status:
            self.send_error(fault.status or 404)
            return
        self._answer(body, asked.range if not fault.ignore_range else "", fault)

    def _answer(self, body: bytes, wanted: str, fault: Fault) -> None:
        begin = int(wanted.removeprefix("bytes=").rstrip("-") or 0)
        if begin >= len(body) > 0:
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        if begin:
            self.send_header("Content-Range", f"bytes {begin}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
        self.send_header("Content-Length", str(len(body) - begin))
        self.end_headers()
        self.wfile.write(body[begin:] if fault.cut_after_bytes < 0 else body[begin : begin + fault.cut_after_bytes])

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


def _wheel(dist_info: str, metadata: bytes, content: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        for path, data in content.items():
            wheel.writestr(path, data)
        wheel.writestr(f"{dist_info}/METADATA", metadata)
        wheel.writestr(f"{dist_info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{dist_info}/RECORD", "")
    return out.getvalue()
