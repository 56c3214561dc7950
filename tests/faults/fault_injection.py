"""Lets allocations, writes, reads and threads of dculab's main commands fail, and sends them signals, call by call.

Whatever fails, a command ends with exit code 0 and all that it was asked for, or with 2 and one line, or by the signal
it was sent. Its outputs are whole, or what they were before; other files are left alone; nothing is left behind.

No fault is injected twice. It is a failure if fewer faults were injected than were asked for.

Usage: fault_injection.py DCULAB INJECTOR [options]
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import signal
import sys
import tempfile

import commands
import faulted_run

SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGKILL]
KINDS = [*faulted_run.KINDS, "signal"]
HOWS = {"memory": ["once", "on"], "write": ["once", "on", "short"], "read": ["once", "on"], "thread": ["once", "on"]}
ASKED = {"memory": 1000, "write": 200, "read": 150, "thread": 50, "signal": 400}
# Tries per fault that is asked for: a call may not come this time, `short` may find nothing to cut, `on` no later call.
SPARE = {"memory": 1.1, "write": 1.6, "read": 1.3, "thread": 1.6, "signal": 1.1}
EARLY = 0.4  # this share of the calls is drawn evenly over the logarithm of their numbers
Fault = collections.namedtuple("Fault", "kind spec old_outputs")
COLUMNS = ["calls", "faults", "exit 0", "exit 2", "signal", "failures"]


def drawn(calls, many, draw):
    """Numbers of calls, from 1: all if they are few, else spread over all of them, denser over the first."""
    if calls <= many:
        return list(range(1, calls + 1))
    numbers = set()
    while len(numbers) < many:
        early = draw.random() < EARLY
        numbers.add(min(calls, int(calls ** draw.random()) if early else draw.randint(1, calls)))
    return sorted(numbers)


def how_many(kind, bed):
    """Different faults of this kind: `on` is `once` at the last thread."""
    same = kind == "thread" and bed.calls[kind] > 0
    return len(bed.old_outputs) * (len(HOWS[kind]) * bed.calls[kind] - same)


def failing_calls(kind, bed, many, draw):
    calls = bed.calls[kind]
    different = [Fault(kind, f"{kind}:{number}:{how}", old)
                 for number in drawn(calls, many, draw) for how in HOWS[kind] for old in bed.old_outputs
                 if (kind, number, how) != ("thread", calls, "on")]
    return draw.sample(different, min(many, len(different)))


def signals(bed, many, draw):
    """Half of them come at a write, where they could do harm, the others at any time."""
    different = set()
    for kind, goal in (("write", many // 2), ("memory", many)):
        goal = min(goal, len(different) + bed.calls[kind] * len(SIGNALS) * len(bed.old_outputs))
        while len(different) < goal:
            spec = f"{kind}:{draw.randint(1, bed.calls[kind])}:{draw.choice(SIGNALS):d}"
            different.add(Fault("signal", spec, draw.choice(bed.old_outputs)))
    return sorted(different)


def shared_out(many, weights, most):
    """`many` faults over all commands, to each by its weight, and no more than there can be."""
    shares, left = {}, many
    for name in sorted(weights, key=lambda each: most[each] / weights[each]):
        rest = sum(weights[each] for each in weights if each not in shares)
        shares[name] = min(most[name], max(min(left, 1), round(left * weights[name] / rest)))
        left = max(0, left - shares[name])
    return shares


def planned(beds, arguments):
    """The faults of each command."""
    plan = {name: [] for name in beds}
    weights = {name: bed.command.weight for name, bed in beds.items()}
    draws = {name: random.Random(f"{arguments.seed} {name}") for name in beds}
    many = {kind: round(SPARE[kind] * getattr(arguments, kind)) for kind in KINDS}
    for kind in faulted_run.KINDS:
        most = {name: how_many(kind, bed) for name, bed in beds.items()}
        for name, share in shared_out(many[kind], weights, most).items():
            plan[name] += failing_calls(kind, beds[name], share, draws[name])
    for name, share in shared_out(many["signal"], weights, dict.fromkeys(beds, many["signal"])).items():
        plan[name] += signals(beds[name], share, draws[name])
    return plan


def run_faults(bed, faults):
    """The rows of the command's table, by kind."""
    name, rows = bed.command.name, {kind: collections.Counter(calls=bed.calls.get(kind, 0)) for kind in KINDS}
    happened = set()
    for fault in faults:
        done, wrong = bed.judge(fault.spec, fault.old_outputs)
        row = rows[fault.kind]
        if done.faults > 0:  # a call of another thread may not have come this time
            last = fault.spec.endswith(":on") and done.faults == 1  # then it is the same as `once`
            happened.add(fault._replace(spec=fault.spec + "ce") if last else fault)
        row["exit 0"] += done.code == 0
        row["exit 2"] += done.code == 2
        row["signal"] += done.code != "hang" and done.code < 0
        row["failures"] += bool(wrong)
        if wrong:
            old = " --old-outputs" if fault.old_outputs else ""
            print(f"{name}: {'; '.join(wrong)}\n    --commands '{name}' --fault {fault.spec}{old}", flush=True)
    for kind, row in rows.items():
        row["faults"] = sum(fault.kind == kind for fault in happened)
    print(f"{name}: {len(faults)} faults, {sum(row['failures'] for row in rows.values())} failures", flush=True)
    return rows


def print_table(table):
    table["all"] = {kind: sum((rows[kind] for rows in table.values()), collections.Counter()) for kind in KINDS}
    print(f"\n{'command':<16}{'fault':<8}" + "".join(f"{column:>10}" for column in COLUMNS))
    for name, rows in table.items():
        for kind, row in rows.items():
            print(f"{name:<16}{kind:<8}" + "".join(f"{row[column]:>10}" for column in COLUMNS))


def too_few(table, arguments):
    """A line for each kind of fault of which fewer were injected than asked for, as when the injector is not loaded."""
    injected = {kind: table["all"][kind]["faults"] for kind in KINDS}
    return [f"{kind}: {injected[kind]} different faults were injected, not {getattr(arguments, kind)}"
            for kind in KINDS if injected[kind] < getattr(arguments, kind)]


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("injector", type=os.path.abspath, help="the library that is preloaded")
    parser.add_argument("--commands", default="", help="comma-separated; all of them otherwise")
    for kind, many in ASKED.items():
        parser.add_argument(f"--{kind}", type=int, default=many, help=f"{kind} faults over all commands (%(default)s)")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="a new one otherwise")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="commands at a time")
    parser.add_argument("--fault", help="this one alone, as a failure is printed")
    parser.add_argument("--old-outputs", action="store_true", help="with --fault: the outputs are there already")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may ignore it for what runs in the background
    arguments = parsed_arguments()
    names = arguments.commands.split(",") if arguments.commands else [each.name for each in commands.COMMANDS]
    chosen = [each for each in commands.COMMANDS if each.name in names]
    if len(chosen) != len(names):
        sys.exit("no such command; there are " + ", ".join(each.name for each in commands.COMMANDS))
    print(f"--seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as root, concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        made = [pool.submit(faulted_run.Bed, arguments.program, arguments.injector, command,
                            pathlib.Path(root) / command.name) for command in chosen]
        beds = {bed.result().command.name: bed.result() for bed in made}
        plan = planned(beds, arguments)
        if arguments.fault:
            given = Fault(arguments.fault.split(":")[0], arguments.fault, arguments.old_outputs)
            plan = {name: [given] for name in beds}
        running = {name: pool.submit(run_faults, beds[name], faults) for name, faults in plan.items()}
        table = {name: rows.result() for name, rows in running.items()}
    print_table(table)
    missing = [] if arguments.fault else too_few(table, arguments)
    for line in missing:
        print(line)
    sys.exit(1 if missing or any(row["failures"] for row in table["all"].values()) else 0)


if __name__ == "__main__":
    main()
