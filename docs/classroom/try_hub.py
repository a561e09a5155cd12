"""Let several learners start their servers and run one lesson at once, through the hub's API.

``GPUTUTOR_HUB_TOKEN=... python docs/classroom/try_hub.py --users 4`` against the hub of
trial_config.py; it prints how long each waited and ran, and fails if a cell did.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
import uuid

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect

HUB = "http://127.0.0.1:8765"
SECONDS = 300  # for a server to start, and for a cell
#: Prints what the kernel took at most, and its limit; both in MiB.
MEMORY = """
import resource
limit, _ = resource.getrlimit(resource.RLIMIT_AS)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, "of", limit // 2**20)
"""


class Learner:
    """One learner: a server, a kernel, and what went wrong."""

    def __init__(self, name: str, token: str) -> None:
        self.name = name
        self.header = {"Authorization": f"token {token}"}
        self.faults: list[str] = []
        self.started = self.ran = 0.0
        self.cells = 0
        self.memory = ""

    async def ask(self, path: str, method: str = "GET", body: object = None) -> object:
        """Send a request; return what the answer's JSON holds."""
        text = None if method in ("GET", "DELETE") else json.dumps(body or {})
        request = HTTPRequest(
            HUB + path, method, self.header, text, request_timeout=SECONDS, follow_redirects=False
        )
        answer = await AsyncHTTPClient().fetch(request)
        return json.loads(answer.body or b"null")

    async def start(self) -> None:
        """Start the server, and wait until it answers."""
        begin = time.perf_counter()
        user = f"/hub/api/users/{self.name}"
        await self.ask(user, "POST")
        await self.ask(f"{user}/server", "POST")
        while not (server := (await self.ask(user))["servers"].get("", {})).get("ready"):
            if not server or time.perf_counter() - begin > SECONDS:
                raise TimeoutError(f"{self.name}: no server; the hub's log says why")
            await asyncio.sleep(0.2)
        self.started = time.perf_counter() - begin

    async def run(self, lesson: str) -> None:
        """Run a lesson's cells one after another, as its reader does."""
        begin = time.perf_counter()
        api = f"/user/{self.name}/api"
        notebook = (await self.ask(f"{api}/contents/notebooks/{lesson}"))["content"]
        kernel = await self.ask(f"{api}/kernels", "POST", {"name": "python3", "path": "notebooks"})
        channels = f"{HUB}{api}/kernels/{kernel['id']}/channels".replace("http", "ws", 1)
        socket = await websocket_connect(HTTPRequest(channels, headers=self.header))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                error, _ = await asyncio.wait_for(self.execute(socket, cell["source"]), SECONDS)
                self.cells += 1
                if error and "raises-exception" not in cell["metadata"].get("tags", []):
                    self.faults.append(f"{cell['id']}: {error}")
        self.ran = time.perf_counter() - begin
        _, self.memory = await self.execute(socket, MEMORY)
        socket.close()

    async def execute(self, socket: object, code: str) -> tuple[str, str]:
        """Run one cell; return its error, if any, and what it printed."""
        header = {
            **{"msg_id": uuid.uuid4().hex, "msg_type": "execute_request", "version": "5.3"},
            **{"username": self.name, "session": self.name},
        }
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        await socket.write_message(json.dumps({**message, "channel": "shell"}))
        reply, idle, printed = None, False, ""
        while reply is None or not idle:
            text = await socket.read_message()
            if text is None:
                raise ConnectionError(f"{self.name}: the kernel's connection was closed")
            got = json.loads(text)
            if got["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            if got["msg_type"] == "execute_reply":
                reply = got["content"]
            elif got["msg_type"] == "stream":
                printed += got["content"]["text"]
            elif got["msg_type"] == "status":
                idle = got["content"]["execution_state"] == "idle"
        error = f"{reply['ename']}: {reply['evalue']}" if reply["status"] == "error" else ""
        return error, printed.strip()

    async def stop(self) -> None:
        """Stop the server."""
        await self.ask(f"/hub/api/users/{self.name}/server", "DELETE")


async def trial(users: int, lesson: str, token: str) -> list[Learner]:
    """Start all servers at once, then run the lesson in all of them at once."""
    learners = [Learner(f"learner{number}", token) for number in range(users)]
    await asyncio.gather(*(learner.start() for learner in learners))
    try:
        await asyncio.gather(*(learner.run(lesson) for learner in learners))
    finally:
        await asyncio.gather(*(learner.stop() for learner in learners))
    return learners


def main() -> int:
    """Try it; return 0 when every cell of every learner ran, 1 when not."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=4)
    parser.add_argument("--lesson", default="02_move_tensors.ipynb")
    options = parser.parse_args()
    token = os.environ.get("GPUTUTOR_HUB_TOKEN")
    if not token:
        parser.error("GPUTUTOR_HUB_TOKEN is not set: give the token that the hub was started with")
    learners = asyncio.run(trial(options.users, options.lesson, token))
    for one in learners:
        print(
            f"{one.name}: server after {one.started:.1f} s, {one.cells} cells in {one.ran:.1f} s, "
            f"kernel with {one.memory} MiB, {len(one.faults)} faults"
        )
        for fault in one.faults:
            print(f"  {fault}")
    return 1 if any(one.faults for one in learners) else 0


if __name__ == "__main__":
    sys.exit(main())
