"""The live page: a run directory served to a browser on this machine. It reads and never writes."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verigrad.board.report import render_report
from verigrad.board.summary import summarize
from verigrad.errors import MissingExtraError, UsageError
from verigrad.runlog import RunReader

if TYPE_CHECKING:
    from starlette.applications import Starlette

HOST = "127.0.0.1"


def make_app(run_dir: str | Path) -> Starlette:
    """Return the web application of one run: ``/`` the page, ``/summary.json``,
    ``/metrics.json``."""
    try:
        from starlette.applications import Starlette
        from starlette.responses import HTMLResponse, JSONResponse
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("starlette", "board", "the live page") from None
    path = RunReader(run_dir).path

    def page(_: Any) -> HTMLResponse:
        return HTMLResponse(render_report(RunReader(path), live=True))

    def summary(_: Any) -> JSONResponse:
        return JSONResponse(summarize(RunReader(path)))

    def metrics(_: Any) -> JSONResponse:
        return JSONResponse({"metrics": RunReader(path).metrics(phase=None)})

    return Starlette(
        routes=[
            Route("/", page),
            Route("/summary.json", summary),
            Route("/metrics.json", metrics),
        ]
    )


def serve(run_dir: str | Path, *, port: int) -> None:
    """Serve the run on 127.0.0.1 until Ctrl-C. Raises MissingExtraError without the extra
    ``board``."""
    app = make_app(run_dir)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("uvicorn", "board", "the live page") from None
    _refuse_taken(port)
    uvicorn.run(app, host=HOST, port=port, log_level="warning")


def _refuse_taken(port: int) -> None:
    """Refuse a port that somebody listens on, with a remedy; uvicorn only logs it and exits."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as e:
            reason = e.strerror or str(e)
            raise UsageError(
                f"port {port} of {HOST} cannot be served on: {reason}. Choose another with --port."
            ) from None
