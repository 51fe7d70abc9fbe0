"""Pages in a browser: takes a folder of files and functions to run in its page, gives what they returned."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("browse.cjs")
SECONDS = 120


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder on this machine: WebGPU is only there on pages of localhost or https."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://localhost:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Browser:
    """Node.js and the browser that it drives."""

    node: str
    program: str

    def run(self, folder: Path, calls: Sequence[str], screenshot: Path | None = None) -> list[Any]:
        """What each function body returns, in order. Fails if the page reports an error."""
        with served(folder) as url:
            told = {"browser": self.program, "url": url, "calls": list(calls)}
            told["screenshot"] = str(screenshot) if screenshot else ""
            done = subprocess.run(
                [self.node, str(SCRIPT)],
                input=json.dumps(told),
                capture_output=True,
                text=True,
                timeout=SECONDS,
                check=False,
            )
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout)
        assert answer["errors"] == []
        return answer["results"]
