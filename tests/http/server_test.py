"""`dculab serve` over sockets: requests as `vllm bench serve` sends them, clients that break off or misbehave, limits.

Usage: server_test.py PROGRAM SOURCE_DIR
"""

import concurrent.futures
import gzip
import json
import pathlib
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from dculab_server import Server, generated, prompts, stream

PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = str(SOURCE / "scenarios/models/dculab-tiny")
REQUESTS, TOKENS, CONNECTIONS = 1000, 16, 64


def bench_request(server: Server, prompt: str, tokens: int = TOKENS, **changes) -> dict:
    """The payload of vllm/benchmarks/lib/endpoint_request_func.py."""
    return {
        "model": server.model, "prompt": prompt, "repetition_penalty": 1.0, "max_tokens": tokens, "logprobs": None, "stream": True,
        "stream_options": {"include_usage": True}, "ignore_eos": True, "temperature": 0.0, **changes,
    }


def check_bench_requests(server: Server, folder: pathlib.Path):
    """All are answered, with the text that `dculab run` generates."""
    asked = prompts(REQUESTS)
    local = threading.local()

    def send(prompt):
        if not hasattr(local, "connection"):
            local.connection = server.connect()
        return stream(server, bench_request(server, prompt), local.connection)

    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        results = list(pool.map(send, asked))
    lost = [result for result in results if result["status"] != 200 or not result["done"]]
    assert not lost, (len(lost), lost[0])
    expected = generated(PROGRAM, MODEL, asked, folder, TOKENS, "--ignore-eos")
    for result, text in zip(results, expected, strict=True):
        assert result["text"] == text, (result, text)
        assert result["usage"]["completion_tokens"] == TOKENS and result["finish_reason"] == "length"
        assert len(result["itl"]) <= TOKENS - 1
    assert server.metric("request_success_total", finished_reason="length") == REQUESTS
    assert server.metric("generation_tokens_total") == REQUESTS * TOKENS
    assert server.metric("time_to_first_token_seconds_count") == REQUESTS
    server.wait_until_empty()
    return results


def check_pages(server: Server):
    assert server.get("/health") == ""
    assert "version" in json.loads(server.get("/version"))
    card = json.loads(server.get("/v1/models"))["data"][0]
    assert card["id"] == server.model and card["max_model_len"] == 1024
    page = server.get("/")
    assert "steps?since=" in page and "http://" not in page and "https://" not in page
    view = json.loads(server.get("/steps"))
    assert len(view["steps"]) > 100 and view["machine"] == "x86-server", view.get("machine")
    assert view["all"]["steps"] > 0 and view["decodes"]["predicted_seconds"] > 0
    later = json.loads(server.get(f"/steps?since={view['steps'][-3]['number']}"))
    assert len(later["steps"]) == 2


def check_drawn_page(server: Server):
    """In a browser, where there is one."""
    browser = shutil.which("chromium")
    if not browser:
        return
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=3000", "--dump-dom"]
    page = subprocess.run([browser, *options, server.url + "/"], capture_output=True, text=True, timeout=120, check=True).stdout
    drawn = page.split("<script>")[0]
    assert "Predicted for x86-server." in drawn and drawn.count('<path class="') == 2, drawn[-2000:]
    assert drawn.count("<tr><th>") == 4 and "NaN" not in drawn, drawn[-2000:]


PAGE_TEST = """
const urls = [], elements = {}, step = number => ({ number, measured_seconds: 1, predicted_seconds: 1 });
const view = (steps, count) => ({ machine: "m", steps: steps.map(step),
  all: { steps: count, unpriced: 0, measured_seconds: 1, predicted_seconds: 1 }, decodes: { steps: 0 } });
const views = [view([98, 99, 100], 100), view([], 2), view([1, 2], 2), view([3], 3)];
globalThis.document = { getElementById: id => elements[id] ??= {} };
globalThis.fetch = async url => {
  if (url === "v1/models") return { json: async () => ({ data: [{ id: "m" }] }) };
  urls.push(url);
  return { json: async () => views.shift() };
};
globalThis.setTimeout = look => views.length ? Promise.resolve().then(look) : console.log(JSON.stringify([urls, elements.chart.innerHTML]));
"""


def check_page_after_restart(server: Server):
    """The page draws the steps of a server that was started anew; where there is Node."""
    node = shutil.which("node")
    if not node:
        return
    script = server.get("/").split("<script>")[1].split("</script>")[0]
    run = subprocess.run([node, "-"], input=PAGE_TEST + "(0, eval)(" + json.dumps(script) + ");", capture_output=True, text=True, timeout=60, check=True)
    urls, chart = json.loads(run.stdout)
    assert urls == [f"steps?since={since}" for since in (0, 100, 0, 2)], urls
    assert "step 1<" in chart and "step 3<" in chart, chart


def check_answers(server: Server):
    whole = server.complete(prompt="Once upon a time", max_tokens=8, temperature=0)
    assert whole["usage"]["completion_tokens"] == 8 and whole["choices"][0]["finish_reason"] == "length"
    stopped = server.complete(prompt="Once upon a time", max_tokens=8, temperature=0, stop=whole["choices"][0]["text"][5:8])
    assert stopped["choices"][0] | {"text": ""} == whole["choices"][0] | {"text": "", "finish_reason": "stop"}
    assert stopped["choices"][0]["text"] == whole["choices"][0]["text"][:5]
    seeded = [server.complete(prompt="Once", max_tokens=12, temperature=1.5, seed=7)["choices"][0]["text"] for _ in range(2)]
    assert seeded[0] == seeded[1]
    chance = {server.complete(prompt="Once", max_tokens=12, temperature=1.5)["choices"][0]["text"] for _ in range(5)}
    assert len(chance) > 1


def check_refusals(server: Server):
    cases = [
        (400, None, b"{"), (400, None, b""), (400, None, b"[]"), (400, None, b'{"prompt": "\xff"}'), (400, None, b"[" * 100000),
        (400, "n", {"prompt": "a", "n": 2}), (400, "prompt", {"prompt": ""}), (400, "prompt", {"prompt": [5000]}),
        (400, "prompt", {"prompt": "word " * 2000}), (400, "max_tokens", {"prompt": "a", "max_tokens": 5000}),
        (404, "model", {"prompt": "a", "model": "gpt-4"}), (400, "nothing", {"prompt": "a", "nothing": 1}),
    ]
    for status, param, body in cases:
        got, _, answer = server.ask("POST", "/v1/completions", body)
        error = json.loads(answer)["error"]
        assert (got, error["param"]) == (status, param), (body, got, error)
        assert error["message"] and error["type"]
    got, _, answer = server.ask("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}]})
    assert got == 400 and "chat_template" in json.loads(answer)["error"]["message"]
    assert server.ask("GET", "/nothing")[0] == 404 and json.loads(server.ask("GET", "/nothing")[2])["error"]
    assert server.ask("POST", "/v1/completions", b" " * ((1 << 20) + 1))[0] == 413
    assert server.ask("GET", "/v1/completions")[0] in (404, 405)


def answer_to(server: Server, *pieces: bytes) -> bytes:
    """All that comes back, until the server closes the connection."""
    with socket.create_connection((server.host, server.port), timeout=60) as client:
        for piece in pieces:
            try:
                client.sendall(piece)
            except ConnectionError:
                break
        answer = b""
        while got := client.recv(65536):
            answer += got
    return answer


def check_bodies(server: Server):
    """The limit of 1 MiB holds for bodies as they are unpacked, in chunks and at any path; a form's type changes nothing."""
    padded = json.dumps({"prompt": "a", "max_tokens": 2}).encode() + b" " * 100_000
    for headers in ({"Content-Type": "application/x-www-form-urlencoded"}, {"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}):
        body = gzip.compress(padded) if "Content-Encoding" in headers else padded
        assert server.ask("POST", "/v1/completions", body, headers=headers)[0] == 200, headers
    bomb = gzip.compress(b" " * (256 << 20))
    before = resident_kib(server)
    status, headers, body = server.ask("POST", "/v1/completions", bomb, headers={"Content-Encoding": "gzip"})
    assert status == 413 and headers["Connection"] == "close" and "1048576 bytes" in json.loads(body)["error"]["message"], (status, body)
    for path, status in (("/v1/completions", b"413"), ("/nothing", b"404")):
        head = b"POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % path.encode()
        chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
        answer = answer_to(server, head, *[chunk] * 200)
        assert answer == b"" or answer.split()[1] == status, answer[:200]
        answer = answer_to(server, head, *[chunk] * 2)
        assert answer.split()[1] == status, answer[:200]
    small = b"%x\r\n%s\r\n0\r\n\r\n" % (len(padded), padded)
    answer = answer_to(server, b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + small)
    assert answer.startswith(b"HTTP/1.1 200 "), answer[:200]
    assert resident_kib(server) < before + (64 << 10), (before, resident_kib(server))
    form = b"--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na\r\n--x--\r\n"
    assert server.ask("POST", "/v1/completions", form, headers={"Content-Type": "multipart/form-data; boundary=x"})[0] == 415
    for method in ("PUT", "PATCH", "DELETE"):
        assert server.ask(method, "/v1/completions", padded)[0] == 404
    assert answer_to(server, b"POST /v1/completions HTTP/1.1\r\nConnection: close\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def resident_kib(server: Server) -> int:
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:"))


def check_ranges(server: Server):
    """No part of an answer is had."""
    whole = {"Range": "bytes=0-1"}
    status, _, body = server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2}, headers=whole)
    assert status == 200 and json.loads(body)["usage"], (status, body)
    status, _, body = server.ask("POST", "/v1/completions", bench_request(server, "a"), headers=whole)
    assert status == 200 and body.endswith(b"data: [DONE]\n\n"), (status, body)
    for since in ("x", "-1", "99999999999999999999"):
        assert json.loads(server.get("/steps?since=" + since))["steps"], since


def check_bad_clients(server: Server):
    """Bytes that are no HTTP, requests that never end, clients that go: the server serves on."""
    idle = []
    for sent in [b"\0\xff" * 1000 + b"\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
                 b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n",
                 b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n", b"GET /"]:
        each = socket.create_connection((server.host, server.port))
        each.sendall(sent)
        idle.append(each)
    server.get("/health")
    for each in idle:
        each.close()
    server.get("/health")


def check_cancelled(server: Server):
    """Clients that go, streaming or not: their requests end, and their blocks come back."""
    def leave(streaming: bool):
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps(bench_request(server, "A long story of", 900) if streaming else
                           {"prompt": "A long story of", "max_tokens": 900, "ignore_eos": True}).encode())
        if streaming:
            response = connection.getresponse()
            assert response.read1(100)
        else:
            time.sleep(0.2)
        connection.sock.close() if connection.sock else response.close()
        connection.close()

    before = server.metric("request_success_total", finished_reason="abort")
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        list(pool.map(leave, [True, False] * 10))
    server.wait_until_empty()
    assert server.metric("request_success_total", finished_reason="abort") == before + 20


def check_events_come_at_once(server: Server):
    """Also to a client that would take them compressed."""
    connection = server.connect()
    connection.request("POST", "/v1/completions", json.dumps(bench_request(server, "Step by step", 900)).encode(), {"Accept-Encoding": "gzip, deflate, br"})
    response = connection.getresponse()
    assert response.getheader("Content-Type") == "text/event-stream" and response.getheader("Content-Encoding") is None
    assert response.read1(20).startswith(b"data: ")
    end = time.monotonic() + 10
    while server.metric("num_requests_running") != 1:  # which is noted when the step ends, behind its tokens
        assert time.monotonic() < end, server.get("/metrics")
    connection.close()
    response.close()
    server.wait_until_empty()


def check_slow_reader(server: Server):
    """Somebody who does not read keeps nobody waiting."""
    slow = socket.create_connection((server.host, server.port))
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = json.dumps(bench_request(server, "Slowly", 900)).encode()
    slow.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    assert stream(server, bench_request(server, "Quickly", 4))["done"]
    slow.close()
    server.wait_until_empty()


def check_full_queue():
    with Server(PROGRAM, MODEL, "--max-num-seqs", "1", "--max-waiting", "1") as server:
        connections = [server.connect() for _ in range(2)]
        for connection in connections:
            connection.request("POST", "/v1/completions", json.dumps(bench_request(server, "Long", 900)).encode())
            assert connection.getresponse().status == 200
        status, headers, body = server.ask("POST", "/v1/completions", {"prompt": "a"})
        assert status == 503 and headers["Retry-After"] == "1" and "error" in json.loads(body), (status, headers, body)
        for connection in connections:
            connection.close()


def check_long_wait():
    """Prompts that the KV cache can never hold are refused; others wait for room."""
    with Server(PROGRAM, MODEL, "--kv-cache-memory", "1 MiB") as server:
        status, _, body = server.ask("POST", "/v1/completions", {"prompt": "a", "max_tokens": 900})
        assert status == 400 and "KV blocks" in json.loads(body)["error"]["message"], body
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(lambda each: stream(server, bench_request(server, each, 40)), prompts(16)))
        assert all(result["done"] for result in results)


def check_many_clients():
    """1,100 that stream at a time, at the defaults: all are served, and pages answer meanwhile."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    with Server(PROGRAM, MODEL) as server:
        body = json.dumps(bench_request(server, "Long", 900)).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
        clients = [socket.create_connection((server.host, server.port), timeout=60) for _ in range(1100)]
        for client in clients:
            client.sendall(head + body)
        end = time.monotonic() + 60
        while server.metric("num_requests_running") + server.metric("num_requests_waiting") < 1100:
            assert time.monotonic() < end, server.get("/metrics")
            time.sleep(0.1)
        begin = time.monotonic()
        assert server.get("/health") == "" and time.monotonic() - begin < 10
        assert sum(client.recv(15) == b"HTTP/1.1 200 OK" for client in clients) == 1100
        for client in clients:
            client.close()
        server.wait_until_empty()


def check_empty_host():
    run = subprocess.run([PROGRAM, "serve", "--model", MODEL, "--host", ""], capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and "--host" in run.stderr, (run.returncode, run.stderr)


def check_few_descriptors():
    """Where the system allows few, fewer requests wait, and connections above the limit are refused at once."""
    with Server(PROGRAM, MODEL, "--max-num-seqs", "4", prefix=["prlimit", "--nofile=200:200"]) as server:
        idle = [socket.create_connection((server.host, server.port), timeout=20) for _ in range(150)]
        refused = [client.recv(4096) for client in idle[-10:]]
        assert all(answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer and b'"error"' in answer for answer in refused), refused
        for client in idle:
            client.close()
        end = time.monotonic() + 20
        while server.ask("GET", "/health")[0] != 200:
            assert time.monotonic() < end
            time.sleep(0.1)
        server.process.terminate()
        assert "may wait, not 1024" in server.process.stderr.read()


def check_whole_answers_at_the_end():
    """Requests that do not stream are told by the status that the server is stopping."""
    with Server(PROGRAM, MODEL) as server:
        def ask(_):
            status, headers, body = server.ask("POST", "/v1/completions", {"prompt": "Long", "max_tokens": 1000, "ignore_eos": True})
            return status, headers.get("Retry-After"), json.loads(body)["error"]["message"]

        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            answers = pool.map(ask, range(32))
            while server.metric("num_requests_running") < 32:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
            assert set(answers) == {(503, "1", "the server is stopping")}


def check_end():
    """A signal ends the server and, with words, whoever is being served."""
    for number in (signal.SIGINT, signal.SIGTERM):
        with Server(PROGRAM, MODEL) as server:
            connection = server.connect()
            connection.request("POST", "/v1/completions", json.dumps(bench_request(server, "Long", 900)).encode())
            response = connection.getresponse()
            response.read1(100)
            server.process.send_signal(number)
            assert server.process.wait(timeout=30) == -number
            rest = response.read()
            assert b"the server is stopping" in rest, rest[-300:]
        with Server(PROGRAM, MODEL) as server:
            server.process.send_signal(number)
            assert server.process.wait(timeout=30) == -number


def main() -> int:
    with tempfile.TemporaryDirectory() as name, Server(PROGRAM, MODEL, "--machine", "x86-server") as server:
        check_bench_requests(server, pathlib.Path(name))
        for check in (check_pages, check_drawn_page, check_page_after_restart, check_answers, check_refusals, check_bodies, check_ranges, check_bad_clients, check_cancelled, check_events_come_at_once, check_slow_reader):
            check(server)
            print(check.__name__, "passed")
        assert server.process.poll() is None
    for check in (check_full_queue, check_long_wait, check_many_clients, check_empty_host, check_few_descriptors, check_whole_answers_at_the_end, check_end):
        check()
        print(check.__name__, "passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
