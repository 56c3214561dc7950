"""What scripts/gpu-validate is made of: what it finds missing before it starts, what it packs, what it says of aims.

Usage: gpu_scripts_test.py SOURCE_DIR
"""

import gzip
import os
import pathlib
import sys
import tarfile
import tempfile
import time

source = pathlib.Path(sys.argv[1])
sys.dont_write_bytecode = True
sys.path.insert(0, str(source / "scripts" / "gpu"))

import device_access  # noqa: E402
import measured_aims  # noqa: E402
import results_archive  # noqa: E402
from device_log import DeviceLog  # noqa: E402


def check_devices(folder):
    devices = folder / "dev"
    (devices / "dri").mkdir(parents=True)
    assert "there is no" in device_access.device_problem(devices) and "--device=/dev/kfd" in device_access.device_problem(devices)
    (devices / "kfd").touch()
    (devices / "dri" / "renderD128").touch()
    assert device_access.device_problem(devices) is None
    (devices / "dri" / "renderD128").chmod(0)
    if os.geteuid() != 0:  # who may open everything
        problem = device_access.device_problem(devices)
        assert "you may not open" in problem and "renderD128" in problem and "usermod -aG render,video" in problem, problem
    problem = device_access.NO_RIGHT.format("/dev/kfd", *device_access.group_of(devices / "kfd"))
    assert "--group-add" in problem and "{" not in problem, problem


def check_compilers():
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = ""
        assert "scripts/install-packages --test --hip" in device_access.compiler_problem("hip")
        assert "nvcc is not in PATH" in device_access.compiler_problem("cuda")
        assert device_access.compiler_problem("host-gpu") is None
        assert device_access.architecture("hip", 0) is None and device_access.ask(["rocminfo"]) == []
    finally:
        os.environ["PATH"] = path


def check_which_gpu(folder):
    """HIP_VISIBLE_DEVICES numbers GPUs anew, and the driver's tool lists all."""
    tool = folder / "rocm_agent_enumerator"
    tool.write_text("#!/bin/sh\necho gfx000\necho gfx906\necho gfx90a\n")
    tool.chmod(0o755)
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = f"{folder}:{path}"
        assert [device_access.architecture("hip", index) for index in range(3)] == ["gfx906", "gfx90a", None]
        os.environ["HIP_VISIBLE_DEVICES"] = "1"
        assert device_access.architecture("hip", 0) == "gfx90a"
        os.environ["HIP_VISIBLE_DEVICES"] = "GPU-0123"
        assert device_access.architecture("hip", 0) == "gfx906"
    finally:
        os.environ["PATH"] = path
        os.environ.pop("HIP_VISIBLE_DEVICES", None)


def check_architectures_and_disks(folder):
    for name in "gfx1030", "gfx1100", "gfx1151", "gfx1201":
        assert "waves have 32 lanes" in device_access.architecture_problem(name), name
    for name in "gfx906", "gfx90a", "gfx942", "gfx928", "80", None:
        assert device_access.architecture_problem(name) is None, name
    assert device_access.disk_problem(folder / "not" / "there", 1) is None
    assert "GB are needed" in device_access.disk_problem(folder / "not" / "there", 1e18)


def check_archive(folder):
    results = folder / "results of somebody"
    (results / "others").mkdir(parents=True)
    words = [("/home/jo/dculab", "<dculab>"), ("mi50", "<host>"), ("jo", "<user>")]
    (results / "before.txt").write_text("$ /home/jo/dculab/build/dculab by jo on mi50; join mi50-probed\n")
    (results / "machine.yaml").write_text("name: mi50\n")
    (results / "decode.jsonl.gz").write_bytes(gzip.compress(b'{"device": "mi50", "id": "/home/jo/dculab/x"}\n'))
    (results / "others" / "int4.jsonl.gz").write_bytes(gzip.compress(b"{}\n"))
    (results / "diary.txt").write_text("not for anybody")
    (results / "decode.jsonl").write_text("not packed twice")
    results_archive.write_letter(results, False, {"device": "a GPU"}, ["decode attention: holds"])
    archive, names = results_archive.pack(results, "a-gpu", words)
    assert sorted(names) == ["README.md", "before.txt", "decode.jsonl.gz", "machine.yaml", "others/int4.jsonl.gz"], names
    with tarfile.open(archive) as packed:
        found = {member.name: packed.extractfile(member).read() for member in packed}
        assert all(member.uid == member.mtime == 0 and not member.uname for member in packed.getmembers())
    assert set(found) == {f"a-gpu/{name}" for name in names}
    assert found["a-gpu/before.txt"].decode() == "$ <dculab>/build/dculab by <user> on <host>; join mi50-probed\n"
    assert found["a-gpu/machine.yaml"] == b"name: mi50\n"  # a name of a machine, not of a host
    assert gzip.decompress(found["a-gpu/decode.jsonl.gz"]) == b'{"device": "mi50", "id": "<dculab>/x"}\n'
    letter = found["a-gpu/README.md"].decode()
    for part in "# Results of a GPU", "| device | a GPU |", "- decode attention: holds", "`machine.yaml`", "open an issue":
        assert part in letter, (part, letter)
    assert "EMULATED" not in letter and "diary" not in letter and "`README.md`" in letter


def check_log(folder):
    tool = folder / "some-smi"
    tool.write_text("#!/bin/sh\necho 1319 MHz\n")
    tool.chmod(0o755)
    log = folder / "device-log.txt"
    with DeviceLog(log, "decode", tools=(["no-such-smi"], [str(tool)]), seconds_between=0.01):
        until = time.monotonic() + 20
        while not log.exists() and time.monotonic() < until:
            time.sleep(0.01)
    assert "== decode, 0 s: " in log.read_text() and "1319 MHz" in log.read_text(), log.read_text()
    with DeviceLog(folder / "none.txt", "decode", tools=(["no-such-smi"],)):
        pass
    assert not (folder / "none.txt").exists()


def check_aims():
    log = "aim: decode attention: lowest 80.5 %, at least 75 % of copy\naim: GPTQ GEMV: lowest 60.0 %, at least 70 % of copy\n"
    aims = measured_aims.verdicts(log, {"held_out_ops": {"attention_decode": {"median_abs_error": 0.05}}})
    assert [aim["holds"] for aim in aims.values()] == [True, False, True], aims
    assert measured_aims.line("GPTQ GEMV", aims["GPTQ GEMV"]) == \
        "GPTQ GEMV: 60.0%, aim 70%: lowest share of the copy bandwidth: DOES NOT HOLD"
    without = measured_aims.verdicts("", {"held_out_ops": {}})
    assert not any(aim["holds"] for aim in without.values()) and len(without) == 3, without


with tempfile.TemporaryDirectory() as name:
    here = pathlib.Path(name)
    check_devices(here)
    check_compilers()
    check_which_gpu(here)
    check_architectures_and_disks(here)
    check_archive(here)
    check_log(here)
    check_aims()
    words = dict(results_archive.private_words(source))
    assert words[str(source)] == "<dculab>", words
    assert results_archive.file_line(here / "none") is None
