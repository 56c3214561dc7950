"""Runs the commands of scripts/gpu-validate, and says that they still run."""

import shlex
import subprocess
import threading
import time

SECONDS_BETWEEN = 15


class Elapsed:
    """From `with` to its end a line every few seconds, with the time that has passed."""

    def __init__(self, seconds_between=SECONDS_BETWEEN):
        self.seconds_between, self.start, self.done = seconds_between, time.monotonic(), threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while not self.done.wait(self.seconds_between):
            print(f"   ... running for {time.monotonic() - self.start:.0f} s", flush=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def run(command, log=None, seconds_between=SECONDS_BETWEEN, **options):
    """Runs it; what it prints is shown, and kept in `log`. Returns whether it ended well."""
    print("$ " + shlex.join(map(str, command)), flush=True)
    with Elapsed(seconds_between), subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                                                    stderr=subprocess.STDOUT, text=True, errors="replace",
                                                    **options) as process:
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if log:
        log.write_text("".join(lines))
    return process.returncode == 0
