"""What the vendor's tool says of clocks, power and temperature while traces are recorded."""

import shutil
import subprocess
import threading
import time

# The first that this machine has. None of these prints a serial number or a UUID.
TOOLS = (
    ["nvidia-smi", "--format=csv", "--query-gpu=name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,"
     "power.draw,power.limit,temperature.gpu"],
    ["hy-smi"],
    ["rocm-smi", "--showclocks", "--showpower", "--showmaxpower", "--showtemp"],
    ["amd-smi", "metric", "--clock", "--power", "--temperature"],
)
SECONDS_BETWEEN = 10


class DeviceLog:
    """Asks the tool at once and then every few seconds, from `with` to its end, and adds its answers to a file. Without a
    tool it does nothing."""

    def __init__(self, path, title, tools=TOOLS, seconds_between=SECONDS_BETWEEN):
        self.path, self.title, self.seconds_between = path, title, seconds_between
        self.tool = next((tool for tool in tools if shutil.which(tool[0])), None)
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        start = time.monotonic()
        while True:  # first asked, then waited: few steps take less than the time between
            try:
                answer = subprocess.run(self.tool, capture_output=True, text=True, check=False, timeout=30).stdout
                with self.path.open("a") as file:
                    file.write(f"== {self.title}, {time.monotonic() - start:.0f} s: {' '.join(self.tool)}\n{answer}\n")
            except (OSError, subprocess.TimeoutExpired):
                return  # what is recorded does not need it
            if self.done.wait(self.seconds_between):
                return

    def __enter__(self):
        if self.tool:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        if self.tool:
            self.thread.join()
