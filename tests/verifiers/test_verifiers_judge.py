import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest
from judging import completion, judge, outcome, problem

from verigrad.errors import RecipeError
from verigrad.types import Outcome
from verigrad.verifiers import make_verifier


class Endpoint(BaseHTTPRequestHandler):
    """Answers by what the last message holds; ``failures`` counts down 503s."""

    failures = 0
    seen: ClassVar[list] = []

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        type(self).seen.append((self.path, self.headers.get("authorization"), body))
        said = body["messages"][-1]["content"]
        status, word = 200, "CORRECT" if "it is 42" in said else "INCORRECT."
        if "confuse" in said:
            word = "CORRECT or INCORRECT"
        if type(self).failures > 0:
            type(self).failures -= 1
            status = 503
        if "stall" in said:
            threading.Event().wait(3)
        reply = {
            "choices": [{"message": {"content": f"<think>INCORRECT?</think>{word}"}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2},
        }
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Quiet."""


@pytest.fixture
def endpoint():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    Endpoint.seen, Endpoint.failures = [], 0
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


def make_judge(url, **options):
    return make_verifier("judge", options={"base_url": url, "model": "m", **options})


def test_the_judge_compares_remembers_and_counts(endpoint, monkeypatch):
    monkeypatch.setenv("JUDGE_KEY", "secret")
    v = make_judge(endpoint, api_key_env="JUDGE_KEY")
    texts = ["it is 42", "it is 7", "it is 42", "<think>it is 42", "confuse"]
    verdicts = v.verify(problem(), [completion(t) for t in texts])
    expected = ["correct", "wrong", "correct", "unparsed", "broken"]
    assert [str(x.outcome) for x in verdicts] == expected
    assert "neither" in verdicts[4].reason
    assert (v.counts.num_calls, v.counts.num_remembered, v.counts.num_failed) == (3, 1, 1)
    assert (v.counts.num_prompt_tokens, v.counts.num_reply_tokens) == (30, 6)
    path, key, body = Endpoint.seen[0]
    assert path == "/v1/chat/completions" and key == "Bearer secret" and body["temperature"] == 0
    assert outcome(v, "it is 42") == "correct" and v.counts.num_calls == 3
    assert outcome(v, "it is 42", "") == "broken", "no reference, no verdict"


def test_the_judges_marks_can_not_be_guessed(endpoint):
    v = make_judge(endpoint, max_characters=100)
    for text in ("x" * 500 + "first", "second"):
        judge(v, text)
    marks = {body["messages"][-1]["content"].splitlines()[-1] for _, _, body in Endpoint.seen}
    assert len(marks) == 2 and all(len(m) == 16 for m in marks)
    assert "x" * 101 not in Endpoint.seen[0][2]["messages"][-1]["content"]


def test_the_judge_retries_is_bounded_and_ends_at_its_deadline(endpoint):
    Endpoint.failures = 1
    v = make_judge(endpoint, retries=1)
    assert outcome(v, "it is 42") == "correct" and v.counts.num_calls == 2
    Endpoint.failures = 5
    assert outcome(make_judge(endpoint, retries=0), "it is 42") == "broken"
    Endpoint.failures = 0
    spent = make_judge(endpoint, max_calls=1)
    verdicts = spent.verify(problem(), [completion("it is 42"), completion("it is 7")])
    assert sorted(str(x.outcome) for x in verdicts) in (["broken", "correct"], ["broken", "wrong"])
    late = judge(make_judge(endpoint, timeout_s=0.3, retries=0), "stall")
    assert late.outcome is Outcome.BROKEN
    gone = judge(make_judge("http://127.0.0.1:9/v1", retries=0), "it is 42")
    assert gone.outcome is Outcome.BROKEN and "ConnectError" in gone.reason


def test_the_judge_is_never_a_default_and_needs_an_endpoint():
    with pytest.raises(RecipeError, match="base_url: field required"):
        make_verifier("judge")
