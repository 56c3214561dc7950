"""Headless Chromium, driven over a pipe in the Chrome DevTools Protocol: no driver and no port is needed."""

import base64
import json
import os
import shutil
import subprocess
import tempfile

PHONE = (390, 844)
DESKTOP = (1440, 900)


class Browser:
    """One page at a time. `problems` collects what the console complained of, `requests` every address asked for."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        browser_in, to_browser = os.pipe()
        from_browser, browser_out = os.pipe()
        command = (f'exec "$0" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --hide-scrollbars '
                   f'--no-first-run --disable-background-networking --remote-debugging-pipe --user-data-dir="$1" '
                   f'3<&{browser_in} 4>&{browser_out}')
        self.process = subprocess.Popen(["bash", "-c", command, shutil.which("chromium"), self.profile.name],
                                        pass_fds=(browser_in, browser_out), stderr=subprocess.DEVNULL)
        os.close(browser_in)
        os.close(browser_out)
        self.sender = os.fdopen(to_browser, "wb", buffering=0)
        self.receiver = os.fdopen(from_browser, "rb")
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.events = []
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.profile.name, eventsEnabled=True)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        self.sender.close()
        self.process.terminate()
        self.process.wait()
        self.receiver.close()
        self.profile.cleanup()

    def _receive(self):
        while b"\0" not in self.buffer:
            part = self.receiver.read1(1 << 20)
            if not part:
                raise EOFError("Chromium ended")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.sender.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self.last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def open(self, path, size=DESKTOP, scheme="light"):
        """Opens a file in a window of that size; waits until it is drawn."""
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.call("Page.navigate", url=f"file://{os.path.abspath(path)}")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._receive())
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def download(self, selector):
        """Clicks what starts a download: the file's name, and its bytes."""
        self.events = []
        self.evaluate(f"document.querySelector({json.dumps(selector)}).click()")
        seen = {}
        while "Browser.downloadProgress" not in seen or seen["Browser.downloadProgress"]["state"] == "inProgress":
            event = self.events.pop(0) if self.events else self._receive()
            seen[event.get("method")] = event.get("params")
        assert seen["Browser.downloadProgress"]["state"] == "completed", seen
        name = seen["Browser.downloadWillBegin"]["suggestedFilename"]
        with open(os.path.join(self.profile.name, name), "rb") as file:
            return name, file.read()

    @property
    def problems(self):
        found = []
        for event in self.events:
            parameters = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
                found.append(parameters["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
                found.append(str(parameters["args"]))
        return found

    @property
    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path, selector=None):
        """The whole page, or one element of it."""
        if selector is None:
            box = self.evaluate("({x: 0, y: 0, width: innerWidth, height: document.documentElement.scrollHeight})")
        else:
            box = self.evaluate(f"(({{x, y, width, height}}) => ({{x: x + scrollX, y: y + scrollY, width, height}}))"
                                f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())")
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip={**box, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(answer["data"]))
