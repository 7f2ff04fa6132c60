"""A real local HTTP server with the completions endpoint, wrapped around the native engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from verigrad.rollout.native import NativeEngine
from verigrad.types import Message, Problem, Prompt, Sampling


@dataclass
class Server:
    """What the server does, and what it was asked."""

    engine: NativeEngine
    with_ids: bool = True
    fail_first: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    url: str = ""

    def complete(self, body: dict[str, Any]) -> dict[str, Any]:
        prompt = Prompt(Problem("x", (Message("user", "x"),), None), "x", tuple(body["prompt"]))
        sampling = Sampling(
            max_new_tokens=body["max_tokens"],
            temperature=body["temperature"],
            top_p=body["top_p"],
            top_k=body["top_k"],
            min_p=body["min_p"],
            stop=tuple(body["stop"]),
        )
        with self.lock:
            group = self.engine.generate([prompt], sampling, group_size=1, seed=body["seed"])[0]
        done = group.completions[0]
        choice: dict[str, Any] = {
            "text": done.text,
            "finish_reason": done.finish_reason.value,
            "logprobs": {"token_logprobs": list(done.sampler_logprobs)},
        }
        if self.with_ids and body.get("return_token_ids"):
            choice["token_ids"] = list(done.token_ids)
        return {"choices": [choice]}


@contextmanager
def serve(state: Server) -> Iterator[Server]:
    """Listen on a free local port until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append(body | {"path": self.path, "auth": self.headers["Authorization"]})
            if state.fail_first > 0:
                state.fail_first -= 1
                self._send(503, {"error": "starting"})
            elif body["model"] != "tiny":
                self._send(404, {"error": f"no model {body['model']}"})
            else:
                self._send(200, state.complete(body))

        def _send(self, code: int, answer: dict[str, Any]) -> None:
            data = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listener = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listener.serve_forever, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{listener.server_port}/v1"
    try:
        yield state
    finally:
        listener.shutdown()
        listener.server_close()
        thread.join()
