"""report.html: whole, self-contained, safe against what a model writes."""

from __future__ import annotations

import json
import re
import socket
from html.parser import HTMLParser
from pathlib import Path

import pytest
from make_run import make_run
from starlette.testclient import TestClient

from verigrad.board.report import render_report, write_report
from verigrad.board.server import HOST, make_app, serve
from verigrad.errors import UsageError
from verigrad.runlog import RunReader, RunWriter

VOID = {"meta", "br", "hr", "img", "input", "link"}


class _Tree(HTMLParser):
    """Checks that every tag is closed in order and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.counts: dict[str, int] = {}

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        self.counts[tag] = self.counts.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _tree(page: str) -> _Tree:
    tree = _Tree()
    tree.feed(page)
    assert tree.open == []
    return tree


def test_the_report_is_written_into_the_run(finished: RunReader) -> None:
    path = write_report(finished.path)
    assert path == finished.path / "report.html"
    tree = _tree(path.read_text(encoding="utf-8"))
    assert tree.counts["figure"] == 10
    assert tree.counts["article"] == 6


def test_the_report_loads_nothing_from_a_network(finished: RunReader) -> None:
    # The name of the SVG language looks like an address and is none.
    page = render_report(finished).replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(src|href)\s*=|@import|url\(|https?://", page)


def test_what_a_model_writes_is_text_and_never_markup(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", steps=2)
    page = render_report(RunReader(run))
    assert "What is" in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    # Once for each of our own scripts: the model's "</script>" is escaped.
    assert page.count("</script>") == page.count("<script")


def test_before_and_after_stand_in_the_table_and_the_headline(finished: RunReader) -> None:
    page = render_report(finished)
    for text in ("30.0% → </span>78.0%", "the intervals do not overlap", "before training",
                 "after the cold start", "after GRPO", "lenient"):  # fmt: skip
        assert text in page, text


def test_findings_recipe_and_environment_are_in_the_page(finished: RunReader) -> None:
    page = render_report(finished)
    for text in ("clip_without_effect", "Remedy: Leave it", "group_size = 8", "&quot;python&quot;"):
        assert text in page, text


def test_the_numbers_behind_a_chart_can_be_read_back(finished: RunReader) -> None:
    blobs = re.findall(r'<script type="application/json">(.*?)</script>', render_report(finished))
    first = json.loads(blobs[0])
    assert [p[0] for p in first["series"][0]["points"]] == [float(s) for s in range(1, 31)]


def test_a_run_without_steps_or_evaluations_still_has_a_report(empty: RunReader) -> None:
    page = render_report(empty)
    _tree(page)
    assert "No step is recorded yet." in page


def test_an_interrupted_run_says_so(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", steps=3, done=False)
    RunWriter(run).status("interrupted", step=3, steps=30, message="saved at step 3")
    page = render_report(RunReader(run))
    assert '<span class="state interrupted">interrupted</span>' in page
    assert "saved at step 3" in page
    assert "of 30 planned" in page


def test_the_audit_is_shown_where_one_was_kept(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", steps=1)
    (run / "audit.json").write_text(json.dumps({"verdict": "pass", "grade": "A"}))
    assert "Audit of the reward: pass, grade A" in render_report(RunReader(run))


def test_metrics_that_are_missing_leave_out_their_chart_only(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r", steps=3)
    rows = [json.loads(x) for x in (run / "metrics.jsonl").read_text().splitlines()]
    for row in rows:
        del row["entropy_mean"], row["load_s"]
    (run / "metrics.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    page = render_report(RunReader(run))
    assert "Entropy, nats per token" not in page
    assert "Seconds per step, by phase" in page


@pytest.mark.parametrize("route", ["/", "/summary.json", "/metrics.json"])
def test_the_live_page_serves_the_run(finished: RunReader, route: str) -> None:
    answer = TestClient(make_app(finished.path)).get(route)
    assert answer.status_code == 200
    if route == "/summary.json":
        assert answer.json()["status"] == "done"
    if route == "/metrics.json":
        assert len(answer.json()["metrics"]) == 38
    if route == "/":
        assert "verigradLive();" in answer.text


def test_a_taken_port_is_refused_with_a_remedy(finished: RunReader) -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"port {port} .* Choose another with --port"):
            serve(finished.path, port=port)
