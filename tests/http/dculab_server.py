"""Starts `dculab serve` for a test, and talks to it."""

import http.client
import json
import pathlib
import re
import signal
import subprocess
import time
import urllib.parse


class Server:
    """Runs on a free port until the `with` block ends."""

    def __init__(self, program: str, model: str, *options: str, prefix: list[str] = ()):
        self.process = subprocess.Popen(
            [*prefix, program, "serve", "--model", model, "--port", "0", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        match = re.fullmatch(r"serving (\S+) on (http://(\S+):(\d+))\n", line)
        if not match:
            raise AssertionError(f"the server said {line!r}, {self.process.stderr.read()!r}")
        self.model, self.url, self.host, self.port = match[1], match[2], match[3], int(match[4])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=30)
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self, timeout: float = 300) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=timeout)

    def ask(self, method: str, path: str, body=None, connection=None, headers=None):
        """(status, headers, body) of a request; `body`: bytes, or what becomes JSON."""
        connection = connection or self.connect()
        sent = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, sent, headers or {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def get(self, path: str):
        status, _, body = self.ask("GET", path)
        assert status == 200, (path, status, body)
        return body.decode()

    def complete(self, **parameters):
        status, _, body = self.ask("POST", "/v1/completions", {"model": self.model, **parameters})
        assert status == 200, (status, body)
        return json.loads(body)

    def metric(self, name: str, **labels: str) -> float:
        """Of /metrics; `name` without the prefix."""
        for line in self.get("/metrics").splitlines():
            if line.startswith(f"vllm:{name}{{") and all(f'{key}="{value}"' in line for key, value in labels.items()):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name} {labels}")

    def wait_until_empty(self, seconds: float = 60):
        """Until no request is left and no KV block is held."""
        end = time.monotonic() + seconds
        while self.metric("kv_cache_usage_perc") > 0 or self.metric("num_requests_running") or self.metric("num_requests_waiting"):
            assert time.monotonic() < end, self.get("/metrics")
            time.sleep(0.05)


class Events:
    """Server-sent events taken apart as vLLM's benchmark client does it (StreamedResponseHandler)."""

    def __init__(self):
        self.buffer = ""

    def add(self, chunk: bytes) -> list[str]:
        self.buffer += chunk.decode()
        messages = []
        while "\n\n" in self.buffer:
            message, self.buffer = self.buffer.split("\n\n", 1)
            if message.strip():
                messages.append(message.strip())
        return messages


def stream(server: Server, body: dict, connection=None, path: str = "/v1/completions"):
    """What `vllm bench serve` keeps of a streamed request: text, usage, TTFT, gaps between tokens."""
    connection = connection or server.connect()
    begin = last = time.perf_counter()
    connection.request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    response = connection.getresponse()
    if response.status != 200:
        return {"status": response.status, "error": response.read().decode()}
    result = {"status": 200, "text": "", "ttft": None, "itl": [], "usage": None, "done": False, "finish_reason": None}
    events = Events()
    while chunk := response.read1(65536):
        for message in events.add(chunk):
            data = message.removeprefix("data: ")
            if data == "[DONE]":
                result["done"] = True
                continue
            document = json.loads(data)
            assert "error" not in document, document
            if choices := document.get("choices"):
                now = time.perf_counter()
                if result["ttft"] is None:
                    result["ttft"] = now - begin
                else:
                    result["itl"].append(now - last)
                last = now
                piece = choices[0].get("text") if "text" in choices[0] else choices[0]["delta"].get("content")
                result["text"] += piece or ""
                result["finish_reason"] = choices[0].get("finish_reason") or result["finish_reason"]
            elif document.get("usage"):
                result["usage"] = document["usage"]
    result["latency"] = last - begin
    return result


def generated(program: str, model: str, prompts: list[str], folder: pathlib.Path, max_tokens: int, *options: str) -> list[str]:
    """What `dculab run` greedily continues each prompt with."""
    file = folder / "prompts.txt"
    file.write_text("\n".join(prompts) + "\n", encoding="utf-8")
    run = subprocess.run(
        [program, "run", "--model", model, "--prompts", str(file), "--max-tokens", str(max_tokens), "--temperature", "0", "--format", "json", *options],
        capture_output=True, check=True,
    )
    return [each["text"] for each in json.loads(run.stdout)["completions"]]


def prompts(count: int) -> list[str]:
    """Different ones, of one line each."""
    people, places = ["a cat", "two boys", "the king", "Anna", "a bird", "my dog", "an old man"], ["wood", "sea", "town", "garden", "school"]
    return [f"Once upon a time, {people[i % 7]} went to the {places[i % 5]} with {i + 2} friends and" for i in range(count)]
