"""INT, TERM and HUP at moments spread over what a command takes: the result is whole or not there, nothing half-written
is left, the terminal's line is clean, and the program ends by the signal. Under nohup HUP changes nothing.

Usage: interruption_test.py DCULAB
"""

import os
import pathlib
import pty
import random
import signal
import subprocess
import sys
import tempfile
import time

TIMES = 8  # of each command
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
CLEAN_LINE = b"\r\x1b[K"
SCENARIO = """schema: dculab/scenario/1
question: Which block size and batch give the most tokens per second?
model: llama-3-8b
machine: z100
workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  kv_cache.block_size: {from: 1, to: 256, factor: 2}
  workload.batch: {from: 1, to: 64, samples: 6000, scale: log}
  workload.context_tokens: {from: 128, to: 9000, samples: 6000, scale: log, seed: 2}
objective: {maximize: tokens_per_second}
"""


def default_signals():
    for each in SIGNALS:
        signal.signal(each, signal.SIG_DFL)


def commands(program, root):
    scenario = root / "scenario.yaml"
    scenario.write_text(SCENARIO)
    search = [program, "study", str(scenario), "--threads", "2", "--points", "points.csv", "--output", "answer.txt"]
    quantize = [program, "quantize", "--model", "dculab-tiny", "--method", "rtn", "--output", "model"]
    return {"study": (search, {"points.csv", "answer.txt"}), "quantize": (quantize, {"model"})}


def start(command, folder):
    """With a terminal as standard error."""
    terminal, end = pty.openpty()
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=end, preexec_fn=default_signals)
    os.close(end)
    return process, terminal


def read_all(terminal):
    shown = b""
    while True:
        try:
            piece = os.read(terminal, 1 << 16)
        except OSError:  # its other end is closed
            piece = b""
        if not piece:
            os.close(terminal)
            return shown
        shown += piece


def interrupt(command, results, folder, seconds, ending):
    process, terminal = start(command, folder)
    time.sleep(random.uniform(0, seconds))
    process.send_signal(ending)
    shown = read_all(terminal)
    process.wait()
    assert process.returncode in (0, -ending), process.returncode
    there = {each.name for each in folder.iterdir()}
    assert there <= results, f"{there} is left"
    assert process.returncode != 0 or there == results
    assert b"dculab:" not in shown, shown
    bar = shown.rfind(b"%")
    assert bar < 0 or shown.rfind(CLEAN_LINE) > bar, shown[-200:]
    return process.returncode != 0


def process_that_writes(folder, started):
    """The results stand in files called NAME.part-PROCESS-... until they are whole."""
    while True:
        for each in folder.glob("*.part-*"):
            return int(each.name.rpartition(".part-")[2].partition("-")[0])
        assert started.poll() is None, f"the study ended with {started.returncode} before it wrote"
        time.sleep(0.005)


def check_shell(command, folder):
    """What a shell sees, and that a signal that was ignored stays ignored."""
    for ending, status in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        process, terminal = start(["sh", "-c", '"$@" & wait $!', "sh", "env", f"--default-signal={ending.name[3:]}",
                                   *command], folder)
        os.kill(process_that_writes(folder, process), ending)
        read_all(terminal)
        assert process.wait() == status, f"{ending.name}: the shell sees {process.returncode}"
    process = subprocess.Popen(["nohup", *command], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    os.kill(process_that_writes(folder, process), signal.SIGHUP)
    assert process.wait() == 0, "nohup did not hold"


def main():
    program = sys.argv[1]
    seed = random.randrange(1 << 30)
    random.seed(seed)
    print("seed", seed)
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        for kind, (command, results) in commands(program, root).items():
            folder = root / kind
            folder.mkdir()
            begun = time.monotonic()
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            seconds = time.monotonic() - begun
            assert {each.name for each in folder.iterdir()} == results
            ended = 0
            for number in range(TIMES):
                folder = root / f"{kind}-{number}"
                folder.mkdir()
                ended += interrupt(command, results, folder, seconds, random.choice(SIGNALS))
            assert ended > 0, "no signal came in time"
            print(f"{kind}: {ended} of {TIMES} were interrupted and left nothing")
        shell = root / "shell"
        shell.mkdir()
        check_shell(commands(program, root)["study"][0], shell)


if __name__ == "__main__":
    main()
