"""Runs scripts/gpu-validate from end to end on the host that plays a GPU, and what reads its results.

Usage: gpu_validate_test.py SOURCE_DIR BUILD_DIR
"""

import getpass
import gzip
import io
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile

source, build = map(pathlib.Path, sys.argv[1:3])
here = pathlib.Path(__file__).resolve().parent
dculab = build / "cli" / "dculab"


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def validate(*arguments, build=build):
    return run(sys.executable, source / "scripts" / "gpu-validate", *arguments, "--build", build, "--skip-build")


def check_one_line(done, *parts):
    """That it stopped as somebody expects who does not read Python."""
    assert done.returncode != 0 and not done.stdout, done
    assert len(done.stderr.splitlines()) == 1 and "Traceback" not in done.stderr, done.stderr
    assert all(part in done.stderr for part in parts), done.stderr


def check_read_back(archive, steps_to_fit, steps):
    """What the program makes of an archive."""
    found = run(dculab, "validate", archive, "--machine", "mi50", "--format", "json")
    assert found.returncode == 0, found.stderr
    assert len(json.loads(found.stdout)["points"]) == steps, found.stdout
    fitted = run(dculab, "calibrate", archive, "--machine", "mi50", "--hold-out", "0.5", "--format", "json")
    assert fitted.returncode == 0, fitted.stderr
    held_out = json.loads(fitted.stdout)["held_out"]["count"]
    assert held_out == steps_to_fit / 2, fitted.stdout
    unnamed = run(dculab, "validate", archive)
    assert unnamed.returncode == 2 and "has no machine.yaml; give --machine M" in unnamed.stderr, unnamed.stderr


def check_private(archive):
    """That an archive says nothing of who made it where."""
    with tarfile.open(archive) as packed:
        assert all(not member.uname and not member.gname and member.mtime == 0 for member in packed.getmembers())
        for member in packed:
            content = packed.extractfile(member).read()
            text = (gzip.decompress(content) if member.name.endswith(".gz") else content).decode()
            assert str(source) not in text and str(folder) not in text, member.name
            for word in (socket.gethostname(), getpass.getuser()):
                assert word not in text.split() or len(word) < 6, (member.name, word)


def check_hostile(folder):
    """Archives that nobody's gpu-validate packs."""
    def pack(name, content, **changes):
        member = tarfile.TarInfo(name)
        member.size = len(content)
        for key, value in changes.items():
            setattr(member, key, value)
        path = folder / "hostile.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=1, format=tarfile.USTAR_FORMAT) as archive:
            archive.addfile(member, io.BytesIO(content))
        return run(dculab, "calibrate", path, "--machine", "mi50")

    check_one_line(pack("../../decode.jsonl", b"{}"), "names a file outside of itself")
    check_one_line(pack("/etc/decode.jsonl", b"{}"), "names a file outside of itself")
    check_one_line(pack("decode.jsonl", b"", type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link or a device")
    check_one_line(pack("decode.jsonl.gz", gzip.compress(bytes(257 << 20), 1)), "holds more than 268435456 bytes")
    check_one_line(pack("letter.txt", b"no traces"), "is an archive without traces")


def check_traces(folder):
    return run(sys.executable, here / "gpu_traces_test.py", dculab, folder)


def predicted(step, model, slower=1):
    """The step with the times that mi50 is predicted to take; decode attention `slower` times as long."""
    slices = step["batch"]
    done = run(dculab, "predict", "--model", model, "--machine", "mi50", "--weights", "f16", "--phase", "decode",
               "--batch", slices[0]["count"], "--context", slices[0]["num_computed_tokens"] + 1,
               "--kv-heads", step["model"]["layer_kinds"][0]["num_key_value_heads"], "--block-size", step["options"]["block_size"],
               "--format", "json")
    assert done.returncode == 0, done.stderr
    price = json.loads(done.stdout)
    seconds = {op["op"]: op["seconds"] for op in price["ops"]}
    more = (slower - 1) * seconds["attention_decode"]
    seconds["attention_decode"] += more
    return step | {"seconds": price["step_seconds"] + more,
                   "ops": [{"name": op["name"], "seconds": seconds[op["name"]]} for op in step["ops"]]}


def write_device(folder, header, steps):
    folder.mkdir(parents=True)
    shutil.copy(source / "hwmodels" / "mi50.yaml", folder / "machine.yaml")
    lines = [json.dumps(line) for line in [header | {"device": "a device of this test"}, *steps]]
    (folder / "decode.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)

    # No device: one line, before anything is timed.
    missing = validate("cuda", "0", "--output", folder / "missing")
    if missing.returncode != 0:
        assert len(missing.stderr.splitlines()) == 1, missing.stderr
        assert "CUDA" in missing.stderr or "no GPU was found" in missing.stderr, missing.stderr
        assert not (folder / "missing").exists()

    check_one_line(validate("host-gpu", build=folder / "no-build"), "is not there; leave --skip-build out")
    if not pathlib.Path("/dev/kfd").exists():
        check_one_line(validate("hip"), "there is no /dev/kfd", "--device=/dev/kfd")
    check_hostile(folder)

    results = folder / "devices" / "emulated"
    done = validate("host-gpu", "--output", results)
    assert done.returncode == 0, done.stdout + done.stderr
    stages = [line for line in done.stdout.splitlines() if line.startswith("== ")]
    assert len(stages) == 8 and all("EMULATED" in stage for stage in stages), stages
    assert stages[0].startswith("== 1 of 8, 0 s: probe") and done.stdout.count("-- took ") == 8, stages
    assert json.loads((results / "probe.json").read_text())["emulated"] is True
    assert not (results / "machine.yaml").exists()
    held_out = json.loads((results / "held-out.json").read_text())
    assert held_out["held_out_ops"]["attention_decode"]["count"] > 0
    assert [entry["num_key_value_heads"] for entry in held_out["regret"]] == [1, 2, 4]
    trace = gzip.decompress((results / "decode.jsonl.gz").read_bytes()).decode().splitlines()
    assert json.loads(trace[0])["device"].startswith("host build") and len(trace) == 1 + 24
    assert "decode: 24 steps\n" in done.stdout and "prefill: 12 steps\n" in done.stdout, done.stdout
    other = gzip.decompress((results / "others" / "int4.jsonl.gz").read_bytes()).decode().splitlines()
    assert len(other) == 2 and json.loads(other[1])["options"]["weights"] == "gptq-int4", other
    assert (results / "others" / "before.txt").exists()

    # The one file to send.
    letter = (results / "README.md").read_text()
    assert "EMULATED" in letter and "`decode.jsonl.gz`" in letter and "| device | host build" in letter, letter
    short = done.stdout[done.stdout.index("In short: median error"):].splitlines()
    assert short[1].split("  ")[-1] == "NVIDIA H200" and len(short[2].split("%")) == 3, short
    assert short[2].startswith("as mi50 is shipped, without a measurement (H200: h200)"), short
    assert "fitted to half of the steps, on the other half" in short[3] and short[3].endswith(" 2.7%"), short
    assert short[4] == "The H200's figures are of other steps, the 714 of its full grids.", short
    assert "\n".join(short[:5]) in letter, letter
    assert json.loads((results / "environment.json").read_text())["dculab"].startswith("dculab "), results
    check_private(results / "results.tar.gz")
    check_read_back(results / "results.tar.gz", steps_to_fit=24 + 12, steps=24 + 12 + 1)

    # Less of it.
    quick = validate("host-gpu", "--quick", "--output", folder / "quick")
    assert quick.returncode == 0, quick.stdout + quick.stderr
    stages = [line.split(": ", 1)[1] for line in quick.stdout.splitlines() if line.startswith("== ")]
    assert len(stages) == 6 and not any("speed" in stage or "other formats" in stage for stage in stages), stages
    assert "GPTQ GEMV" not in quick.stdout and "decode attention predictions: " in quick.stdout, quick.stdout
    check_private(folder / "quick" / "results.tar.gz")
    check_read_back(folder / "quick" / "results.tar.gz", steps_to_fit=24 + 12, steps=24 + 12)

    # Emulated times are never taken for a GPU's, and no traces are no success.
    refused = check_traces(folder / "devices")
    assert refused.returncode == 1 and "emulated" in refused.stderr, refused.stderr
    (folder / "empty").mkdir()
    skipped = check_traces(folder / "empty")
    assert skipped.returncode == 77 and "no traces of a real GPU" in skipped.stdout, skipped.stdout

    # Every aim has its verdict, in the folder and in the last lines.
    verdicts = json.loads((results / "verdicts.json").read_text())
    assert verdicts["emulated"] is True
    assert list(verdicts["aims"]) == ["decode attention", "GPTQ GEMV", "decode attention predictions"], verdicts
    assert [aim["aim"] for aim in verdicts["aims"].values()] == [0.75, 0.70, 0.08], verdicts
    for what, aim in verdicts["aims"].items():
        as_promised = aim["reached"] <= aim["aim"] if "predictions" in what else aim["reached"] >= aim["aim"]
        assert aim["holds"] is as_promised, (what, aim)
        assert f"\n{what}: " in done.stdout and "(NVIDIA H200: 28.0%)" in done.stdout, done.stdout

    # Steps that took what is predicted pass; steps of which every other one took three times as long in decode
    # attention, which no machine explains, do not.
    header, *steps = map(json.loads, trace)
    write_device(folder / "as-predicted" / "device", header, [predicted(step, results / "tiny") for step in steps])
    passed = check_traces(folder / "as-predicted")
    assert passed.returncode == 0 and "decode attention of 12 held-out steps" in passed.stdout, passed
    assert "regret of the block size at most 0.0%" in passed.stdout, passed.stdout
    uneven = [predicted(step, results / "tiny", slower=3 if row % 2 else 1) for row, step in enumerate(steps)]
    write_device(folder / "otherwise" / "device", header, uneven)
    failed = check_traces(folder / "otherwise")
    assert failed.returncode == 1 and "predicted worse than 8%" in failed.stderr, failed
