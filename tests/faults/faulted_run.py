"""Runs a command in which one fault happens, and judges what it left."""

import collections
import json
import os
import pathlib
import shutil
import signal
import struct
import subprocess
import time

KINDS = ["memory", "write", "read", "thread"]
# Nothing of the command; the second has the name that a careless temporary file would take.
BYSTANDERS = {"bystander.txt": "whose?\n", "answer.json.part": "mine\n"}
OLD = "what an earlier run wrote\n"
FOLDERS = {"model"}  # outputs that are refused where there is one already
TIMES_LONGER = 20  # than without a fault, and a minute: then it hangs

Finished = collections.namedtuple("Finished", "code out err calls faults")  # code < 0: ended by a signal


def contents(path):
    """Of a file its bytes, of a folder those of its files by name, of nothing None."""
    if path.is_dir():
        return {str(each.relative_to(path)): each.read_bytes() for each in sorted(path.rglob("*")) if each.is_file()}
    return path.read_bytes() if path.exists() else None


def shape(value, name=""):
    """What stays the same of output that has times in it. None: it is cut off."""
    if isinstance(value, dict):
        return {each: shape(value[each], each) for each in value}
    if not value or not value.endswith(b"\n"):
        return None
    lines = value.split(b"\n")
    try:
        if name.endswith(".jsonl"):
            return [sorted(json.loads(line)) for line in lines[:-1]]
        if name.endswith(".yaml"):  # where other processes are busy, the probe has no time for some rows of its tables
            return [line.split(b":")[0] for line in lines if not line.strip().startswith(b"rows_")]
        return sorted(json.loads(value)) if value.startswith(b"{") else len(lines)
    except ValueError:
        return None


class Bed:
    """A folder in which a command runs again and again, with the same files each time."""

    def __init__(self, program, injector, command, folder):
        self.program, self.injector, self.command = program, injector, command
        self.folder, self.counts = folder / "here", folder / "counts"
        # Whether the outputs are there already: both, where that makes a difference.
        self.old_outputs = [False, True] if set(command.outputs) - FOLDERS else [False]
        self.given = {name: text.encode() for name, text in {**command.files, **BYSTANDERS}.items()}
        self.fill()
        for arguments in command.before:
            done = self.run(arguments)
            assert done.code == 0, (arguments, done)
        self.given.update((each.name, each.read_bytes()) for each in self.folder.iterdir())
        self.measure()

    def fill(self, old_outputs=False):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        for name, text in self.given.items():
            (self.folder / name).write_bytes(text)
        if old_outputs:
            for name in self.command.outputs:
                if name not in FOLDERS:
                    (self.folder / name).write_text(OLD)

    def run(self, arguments, fault=""):
        self.counts.write_bytes(bytes(8 * (len(KINDS) + 1)))
        environment = dict(os.environ, LD_PRELOAD=self.injector, DCULAB_FAULT_COUNTS=str(self.counts), TMPDIR=".")
        if fault:
            environment["DCULAB_FAULT"] = fault
        try:
            done = subprocess.run([self.program, *arguments], cwd=self.folder, env=environment, capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=self.limit if fault else None)
        except subprocess.TimeoutExpired as hung:
            done = subprocess.CompletedProcess(arguments, "hang", hung.stdout or b"", hung.stderr or b"")
        *calls, faults = struct.unpack(f"{len(KINDS) + 1}Q", self.counts.read_bytes())
        return Finished(done.returncode, done.stdout, done.stderr, dict(zip(KINDS, calls)), faults)

    def outputs(self):
        return {name: contents(self.folder / name) for name in self.command.outputs}

    def measure(self):
        """Runs without a fault, twice: what differs then is compared by its shape."""
        self.fill()
        begun = time.monotonic()
        first = self.run(self.command.arguments)
        self.limit = max(60, TIMES_LONGER * (time.monotonic() - begun))
        assert first.code == 0, (self.command.name, first)
        self.wanted = {**self.outputs(), "standard output": first.out}
        self.fill()
        again = self.run(self.command.arguments)
        second = {**self.outputs(), "standard output": again.out}
        self.varies = {name for name in self.wanted if second[name] != self.wanted[name]}
        self.calls = first.calls

    def is_whole(self, name, value):
        if name in self.varies:
            return shape(value, name) is not None and shape(value, name) == shape(self.wanted[name], name)
        return value == self.wanted[name]

    def judge(self, fault, old_outputs):
        """Runs with the fault; returns how it ended and what is wrong, a list."""
        self.fill(old_outputs)
        done = self.run(self.command.arguments, fault)
        return done, [*self.wrong_end(fault, done), *self.wrong_files(done, fault, old_outputs),
                      *self.wrong_repetition(done, fault)]

    def wrong_end(self, fault, done):
        sent = fault.rsplit(":", 1)[-1]
        if done.code == "hang":
            return [f"hangs for {self.limit:.0f} s"]
        if done.code == 0:
            return [] if self.is_whole("standard output", done.out) else ["exit 0, but standard output is not whole"]
        if sent.isdigit() and done.code == -int(sent) and done.faults:
            return []
        if done.code < 0:
            return [f"ended by {signal.Signals(-done.code).name}"]
        if done.code != 2:
            return [f"exit {done.code}: {done.err.decode(errors='replace').strip()[:200]}"]
        lines = done.err.count(b"\n")
        return [] if lines == 1 and done.err.endswith(b"\n") else [f"exit 2 with {lines} lines on standard error"]

    def wrong_files(self, done, fault, old_outputs):
        wrong = [f"{name} was touched" for name, text in self.given.items() if contents(self.folder / name) != text]
        for name, value in self.outputs().items():
            before = OLD.encode() if old_outputs and name not in FOLDERS else None
            if not self.is_whole(name, value) and (done.code == 0 or value != before):
                wrong.append(f"{name} is " + ("torn" if value is not None else "gone" if before else "missing"))
        if not fault.endswith(f":{signal.SIGKILL:d}"):
            wrong += [f"{name} is left behind" for name in self.strangers()]
        return wrong

    def strangers(self):
        known = {*self.given, *self.command.outputs, self.command.journal}
        return sorted(each.name for each in self.folder.iterdir() if each.name not in known)

    def wrong_repetition(self, done, fault):
        """The same command again, or gone on with from its journal, has the result of a run without a fault."""
        repeats = self.command.journal or fault.endswith(f":{signal.SIGKILL:d}")
        if not repeats or all(self.is_whole(name, value) for name, value in self.outputs().items()):
            return []
        again = self.run([*self.command.arguments, *(["--resume"] if self.command.journal else [])])
        if again.code != 0:
            return [f"then exit {again.code}: {again.err.decode(errors='replace').strip()[:200]}"]
        found = {**self.outputs(), "standard output": again.out}
        wrong = [f"then {name} is another" for name in found if not self.is_whole(name, found[name])]
        return wrong + [f"then {name} is still there" for name in self.strangers()]
