"""The power fails at every moment of a study: the journal goes on to the same answer, or is refused until --salvage is
given and then goes on to it; results are old or new, and whole.

What a study does to its files is recorded (recorded_calls.cpp). Every moment of it is then replayed onto a disk that
keeps what was synced, and of the rest what it likes: nothing, all, the length without the bytes, some sectors, the
names but not the files.

Usage: power_loss_test.py DCULAB RECORDER
"""

import os
import pathlib
import random
import subprocess
import sys
import tempfile

SECTOR = 512
POINTS = 6 * 1024  # some chunks
SCENARIO = """schema: dculab/scenario/1
question: Which block size and batch give the most tokens per second?
model: llama-3-8b
machine: z100
workload: {phase: decode, batch: 16, context_tokens: 2000}
sweep:
  kv_cache.block_size: [16, 64]
  workload.batch: [1, 8, 64]
  workload.context_tokens: {from: 128, to: 8000, samples: %d, scale: log}
objective: {maximize: tokens_per_second, subject_to: {step_time: "<= 50 ms"}}
""" % (POINTS // 6)
OLD = {"answer.json": b"the answer before", "points.csv": b"the points before"}


class File:
    """What was written, and what of it is certainly on the disk."""

    def __init__(self, content=b""):
        self.synced = content
        self.writes = []  # since then: (place, bytes), or (size, None) for a new size

    def apply(self, writes):
        content = bytearray(self.synced)
        for place, data in writes:
            size = place if data is None else max(len(content), place + len(data))
            del content[size:]
            content.extend(bytes(size - len(content)))
            if data:
                content[place:place + len(data)] = data
        return bytes(content)

    def now(self):
        return self.apply(self.writes)

    def sync(self):
        self.synced, self.writes = self.now(), []

    def after_loss(self, how, rng):
        if how == "nothing":
            return self.synced
        if how == "length":
            return self.synced.ljust(len(self.now()), b"\0")[:len(self.now())]
        if how == "first":
            return self.apply(self.writes[:rng.randrange(len(self.writes) + 1)])
        if how == "sectors":
            content = bytearray(self.now())
            for begin in range(0, len(content), SECTOR):
                if rng.random() < 0.3:
                    content[begin:begin + SECTOR] = self.synced[begin:begin + SECTOR].ljust(
                        len(content[begin:begin + SECTOR]), b"\0")
            return bytes(content)
        return self.now()


class Disk:
    def __init__(self, folder):
        self.folder = folder
        self.open = {}  # number -> [path, place]
        self.names = {f"{folder}/{name}": File(content) for name, content in OLD.items()}
        self.synced_names = dict(self.names)

    def call(self, line):
        name, *words = line.split()
        if name == "open":
            path = bytes.fromhex(words[2]).decode()
            if words[1] == "1" and path not in self.names:
                self.names[path] = File()
            self.open[words[0]] = [self.names.get(path, path), 0]
        elif name == "rename":
            source, target = (bytes.fromhex(word).decode() for word in words)
            self.names[target] = self.names.pop(source)
        elif name in ("fsync", "fdatasync"):
            file = self.open[words[0]][0]
            if isinstance(file, File):
                file.sync()
            else:
                self.synced_names = dict(self.names)
        else:
            file, place = self.open[words[0]]
            if name == "ftruncate":
                file.writes.append((int(words[1]), None))
                return
            data = bytes.fromhex(words[2])
            if words[1] == "-1":
                self.open[words[0]][1] += len(data)
            else:
                place = int(words[1])
            file.writes.append((place, data))

    def after_loss(self, how, names_are_kept, rng):
        names = self.names if names_are_kept else self.synced_names
        return {os.path.relpath(path, self.folder): file.after_loss(how, rng) for path, file in names.items()}


def study(program, scenario, folder, *more):
    return [program, "study", str(scenario), "--format", "json", "--output", f"{folder}/answer.json", "--points",
            f"{folder}/points.csv", "--journal", f"{folder}/journal", "--threads", "1", *more]


def record(program, recorder, scenario, root):
    folder, log = root / "recorded", root / "calls"
    folder.mkdir()
    for name, content in OLD.items():
        (folder / name).write_bytes(content)
    environment = {**os.environ, "LD_PRELOAD": recorder, "RECORDED_FOLDER": str(folder), "RECORDED_CALLS": str(log)}
    subprocess.run(study(program, scenario, folder), check=True, env=environment)
    return folder, log.read_text().splitlines()


def states(calls, folder, rng):
    """Every disk that a loss of power may leave, each once."""
    disk, seen = Disk(str(folder)), set()
    for number in range(len(calls) + 1):
        if number > 0:
            disk.call(calls[number - 1])
        for how in ("nothing", "all", "length", "first", "sectors"):
            for names_are_kept in (False, True):
                state = disk.after_loss(how, names_are_kept, rng)
                key = tuple(sorted(state.items()))
                if key not in seen:
                    seen.add(key)
                    yield f"after call {number} of {len(calls)}, {how}", state


def check(program, scenario, folder, state, wanted):
    for name, old in OLD.items():
        assert state[name] in (old, wanted[name]), f"{name} is torn"
    folder.mkdir()
    for name, content in state.items():
        (folder / name).write_bytes(content)
    done = subprocess.run(study(program, scenario, folder, "--resume"), capture_output=True, text=True)
    salvaged = done.returncode == 2
    if salvaged:
        assert "--salvage" in done.stderr, done.stderr
        assert (folder / "journal").read_bytes() == state["journal"], "a refused journal was changed"
        done = subprocess.run(study(program, scenario, folder, "--salvage"), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {each.name for each in folder.iterdir()} == set(wanted), "something is left behind"
    for name, content in wanted.items():
        assert (folder / name).read_bytes() == content, f"{name} is another"
    return salvaged


def main():
    program, recorder = sys.argv[1:]
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as name:
        root = pathlib.Path(name)
        scenario = root / "scenario.yaml"
        scenario.write_text(SCENARIO)
        folder, calls = record(program, recorder, scenario, root)
        wanted = {each.name: each.read_bytes() for each in folder.iterdir()}
        assert set(wanted) == {*OLD, "journal"} and len(wanted["points.csv"].splitlines()) == POINTS + 1
        syncs = sum(call.startswith(("fsync", "fdatasync")) for call in calls)
        assert syncs >= 7, "the journal and its folder, its end, and each result and its folder"
        salvaged = count = 0
        for count, (moment, state) in enumerate(states(calls, folder, rng), 1):
            try:
                salvaged += check(program, scenario, root / str(count), state, wanted)
            except AssertionError as error:
                sys.exit(f"{moment}: {error}")
        assert count > len(calls) and salvaged > 0, "too few losses of power"
    print(f"{len(calls)} calls, {count} losses of power, {salvaged} of them salvaged: the results are the same")


if __name__ == "__main__":
    main()
