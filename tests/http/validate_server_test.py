"""`dculab validate --server`: our own server measured and predicted, and servers that misbehave.

Usage: validate_server_test.py PROGRAM SOURCE_DIR
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

from dculab_server import Server

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "scenarios/models/dculab-tiny")


def validate(*options: str, program_fails: bool = False):
    """The JSON, or what is said where the program fails."""
    run = subprocess.run([PROGRAM, "validate", "--machine", "x86-server", "--format", "json", *options], capture_output=True, text=True)
    assert (run.returncode == 2) == program_fails, (run.returncode, run.stdout, run.stderr)
    return run.stderr if program_fails else json.loads(run.stdout)


def check_own_server(folder: pathlib.Path):
    saved = str(folder / "measured.json")
    with Server(PROGRAM, MODEL) as server:
        load = ["--model", MODEL, "--stack", "dculab", "--requests", "40", "--concurrency", "8", "--prompt-tokens", "64", "--output-tokens", "24"]
        answer = validate("--server", server.url, *load, "--save-result", saved)
        assert server.metric("request_success_total", finished_reason="length") == 40
        assert server.metric("prompt_tokens_total") == 40 * 64 and server.metric("generation_tokens_total") == 40 * 24
    figures = {figure["metric"]: figure for figure in answer["figures"]}
    assert {"ttft_mean", "tpot_mean", "latency_mean", "output_tokens_per_second", "duration"} <= figures.keys(), figures.keys()
    for figure in figures.values():
        assert figure["measured"] > 0 and figure["predicted"] > 0 and figure["tool"] == "vllm bench serve", figure
    again = validate(saved, "--model", MODEL, "--stack", "dculab")
    assert [figure["predicted"] for figure in again["figures"]] == [figure["predicted"] for figure in answer["figures"]]
    result = json.loads(pathlib.Path(saved).read_text(encoding="utf-8"))
    assert result["completed"] == 40 and result["max_concurrency"] == 8 and set(result["output_lens"]) == {24} and set(result["input_lens"]) == {64}
    assert result["mean_tpot_ms"] > 0 and all(len(itls) == 23 for itls in result["itls"])


class FakeServer(http.server.BaseHTTPRequestHandler):
    """Answers as the test says; `behaviour` is a function of this handler."""

    protocol_version = "HTTP/1.1"
    behaviour = None

    def do_GET(self):
        self.reply(200, b'{"data": [{"id": "m"}]}')

    def do_POST(self):
        self.body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        type(self).behaviour(self)

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, *pieces):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()

    def log_message(self, *_):
        pass


def measure_fake(behaviour, folder: pathlib.Path, fails: bool, path: str = "/v1", requests: int = 3, options=()):
    FakeServer.behaviour = behaviour
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakeServer) as fake:
        threading.Thread(target=fake.serve_forever, daemon=True).start()
        saved = folder / "fake.json"
        said = validate("--server", f"http://127.0.0.1:{fake.server_port}{path}", "--model", MODEL, "--stack", "dculab", "--requests", str(requests), *options,
                        "--prompt-tokens", "8", "--output-tokens", "6", "--save-result", str(saved), program_fails=fails)
        fake.shutdown()
    return said if fails else json.loads(saved.read_text(encoding="utf-8"))


def event(**fields) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def check_fake_servers(folder: pathlib.Path):
    token = event(choices=[{"text": "a"}])

    def merges(server):  # three pieces of six tokens, cut in the middle, with a comment
        assert server.body["model"] == "m" and len(server.body["prompt"]) == 8 and server.body["ignore_eos"] is True
        server.stream(b": ping\n\n" + token + token[:9], token[9:] + token, event(choices=[], usage={"completion_tokens": 6}) + b"data: [DONE]\n\n", b"")

    assert measure_fake(merges, folder, fails=False)["output_lens"] == [6, 6, 6]
    cases = [
        (lambda server: server.reply(400, b'{"error": {"message": "no ignore_eos"}}'), "no ignore_eos"),
        (lambda server: server.stream(token, event(error={"message": "out of memory"}), b""), "out of memory"),
        (lambda server: server.stream(b"data: {broken\n\n", b""), "an event of the stream"),
        (lambda server: server.stream(b"data: [DONE]\n\n", b""), "no tokens"),
        (lambda server: server.connection.shutdown(2), "breaks off a request"),
    ]
    for behaviour, words in cases:
        said = measure_fake(behaviour, folder, fails=True)
        assert words in said and said.count("\n") == 1, (words, said)


def check_key_and_path(folder: pathlib.Path):
    """The key goes with each request, to the path that is given, and into no file and no message."""
    token = event(choices=[{"text": "a"}])

    def answers(server):
        assert server.path == "/gateway/v1/completions", server.path
        if server.headers["Authorization"] != "Bearer the-key":
            return server.reply(401, b"no: " + str(server.headers["Authorization"]).encode())
        server.stream(token, token, b"")

    result = measure_fake(answers, folder, fails=False, path="/gateway", options=["--api-key", "the-key"])
    assert result["completed"] == 3 and "the-key" not in json.dumps(result)
    said = measure_fake(answers, folder, fails=True, path="/gateway/v1/", options=["--api-key", "another-key"])
    assert "401 no: Bearer ***" in said and "another-key" not in said, said
    os.environ["OPENAI_API_KEY"] = "the-key"
    assert measure_fake(answers, folder, fails=False, path="/gateway/v1/")["failed"] == 0
    del os.environ["OPENAI_API_KEY"]


def check_some_failures(folder: pathlib.Path):
    """Up to a tenth is counted; with more, what is left says nothing."""
    token = event(choices=[{"text": "a"}])
    for refused, fails in ((2, False), (3, True)):
        left = list(range(refused))

        def answers(server, left=left):
            try:
                left.pop()
            except IndexError:
                return server.stream(token, token, b"")
            return server.reply(503, b"full")

        got = measure_fake(answers, folder, fails, requests=20, options=["--concurrency", "2"])
        if fails:
            assert "refuses a request: 503 full (and so for 3 requests)" in got, got
        else:
            assert (got["completed"], got["failed"], got["num_prompts"]) == (18, 2, 20), got


def check_refusals():
    for options, words in [
        (["--server", "http://127.0.0.1:1", "--model", MODEL, "--stack", "vllm"], "cannot be reached"),
        (["--server", "http://127.0.0.1:1", "--model", MODEL], "--stack"),
        (["--server", "http://127.0.0.1:1", "--stack", "vllm"], "--model"),
        (["--requests", "5"], "--server"),
        (["--server", "http://127.0.0.1:1", "--model", MODEL, "--stack", "vllm", "--requests", "961"], "not sent at once"),
    ]:
        assert words in validate(*options, program_fails=True), options


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        check_own_server(pathlib.Path(name))
        check_fake_servers(pathlib.Path(name))
        check_key_and_path(pathlib.Path(name))
        check_some_failures(pathlib.Path(name))
    check_refusals()
    return 0


if __name__ == "__main__":
    sys.exit(main())
