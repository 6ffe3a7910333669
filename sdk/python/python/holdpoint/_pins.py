"""Where pins are kept: in memory, or in one JSON file for each server."""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from ._errors import PinError
from ._gate import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The largest file that is read. The core has the same limit.
MAX_PINS_BYTES = 256 * 1024 * 1024
# How long another process may hold the lock of a file before it counts as abandoned.
ABANDONED_SECONDS = 10.0
# How long to wait for a lock.
PATIENCE_SECONDS = 15.0
RETRY_SECONDS = 0.01


class PreflightPin:
    """Pins of any number of servers. Without a path they live in memory and are forgotten with the object.

    With a path they are kept in that folder, one file for each server, readable by its user alone. Several processes may
    use one folder.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None):
        self._folder = None if path is None else os.path.abspath(os.path.expanduser(os.fspath(path)))
        self._texts: dict[str, str] = {}
        self._lock = allocate_lock()
        self._count = 0

    def __repr__(self) -> str:
        return "PreflightPin()" if self._folder is None else f"PreflightPin({self._folder!r})"

    def _path(self, server: str) -> str:
        return os.path.join(self._folder or "", server + ".json")

    def describe(self, server: str) -> str:
        """Where the pins of a server are, for a message."""
        return "the pins in memory" if self._folder is None else f"`{self._path(server)}`"

    def read(self, server: str) -> str | None:
        """The document that is kept for a server; `None` if there is none."""
        if self._folder is None:
            return self._texts.get(server)
        path = self._path(server)
        try:
            with open(path, "rb") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o022:
                    raise PinError(f"others can write to `{path}`, and so accept changes: chmod go-w {path}")
                content = file.read(MAX_PINS_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise PinError(f"`{path}` cannot be read: {error.strerror}") from error
        if len(content) > MAX_PINS_BYTES:
            raise PinError(f"`{path}` is larger than {MAX_PINS_BYTES} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise PinError(f"`{path}` is not a document of Holdpoint: it is not UTF-8") from error

    def revision(self, server: str) -> Any:
        """Something that changes whenever another process writes."""
        if self._folder is None:
            return self._texts.get(server)
        try:
            found = os.stat(self._path(server))
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def write(self, server: str, text: str) -> str | None:
        """Writes a document over the one before it. Returns what is kept instead if that is not the one before it."""
        if self._folder is None:
            with self._lock:
                kept = self._texts.get(server)
                if _revision_in(kept) + 1 != _revision_in(text):
                    return kept
                self._texts[server] = text
                return None
        return self._write_file(server, text)

    def _write_file(self, server: str, text: str) -> str | None:
        folder, path = self._folder or "", self._path(server)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        lock = path + ".lock"
        self._take(lock)
        try:
            kept = self.read(server)
            if _revision_in(kept) + 1 != _revision_in(text):
                return kept
            self._count += 1
            part = f"{path}.{os.getpid()}.{self._count}.tmp"
            try:
                with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(part, path)
            except BaseException:
                _remove(part)
                raise
            return None
        finally:
            _remove(lock)

    def _take(self, lock: str) -> None:
        until = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
                return
            except FileExistsError:
                if self._is_abandoned(lock):
                    _remove(lock)
                elif time.monotonic() > until:
                    raise PinError(f"`{lock}` is held by another process") from None
                else:
                    time.sleep(RETRY_SECONDS)

    @staticmethod
    def _is_abandoned(lock: str) -> bool:
        try:
            return time.time() - os.stat(lock).st_mtime > ABANDONED_SECONDS
        except OSError:
            return False


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _revision_in(text: str | None) -> int:
    """The revision of a document. One that cannot be read is never the one before another."""
    if text is None:
        return 0
    found = _core.revision(text)
    return -2 if found is None else found
