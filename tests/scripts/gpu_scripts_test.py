"""What scripts/gpu-validate is made of: what it finds missing before it starts, what it packs, what it says of aims.

Usage: gpu_scripts_test.py SOURCE_DIR
"""

import contextlib
import gzip
import io
import os
import pathlib
import re
import shutil
import subprocess
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
import running  # noqa: E402
import shipped_machines  # noqa: E402
import validation_grids  # noqa: E402
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
        assert "scripts/install-packages --gpu --hip" in device_access.compiler_problem("hip")
        assert "nvcc is not in PATH" in device_access.compiler_problem("cuda")
        assert device_access.compiler_problem("host-gpu") is None
        assert device_access.architecture("hip", 0) is None and device_access.ask(["rocminfo"]) == []
    finally:
        os.environ["PATH"] = path


def check_build_tools(folder):
    """Ubuntu 22.04 has a CMake that is too old."""
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = str(folder)
        problem = device_access.build_tools_problem()
        assert "cmake is not in PATH, and ninja is not in PATH" in problem and "pip install cmake ninja" in problem, problem
        for name, version in ("ninja", "1.11"), ("cmake", "cmake version 3.22.1"):
            (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
            (folder / name).chmod(0o755)
        assert device_access.build_tools_problem().startswith("cmake is 3.22, and 3.25 is the oldest")
        for version in "3.25.0", "3.31.6-gdeadbee", "4.0.2":
            (folder / "cmake").write_text(f"#!/bin/sh\necho cmake version {version}\n")
            assert device_access.build_tools_problem() is None, version
    finally:
        os.environ["PATH"] = path
    least = re.search(r"cmake_minimum_required\(VERSION (\d+)\.(\d+)", (source / "CMakeLists.txt").read_text())
    assert device_access.OLDEST_CMAKE == (int(least[1]), int(least[2]))


def check_which_gpu(folder):
    """HIP_VISIBLE_DEVICES numbers GPUs anew, and the driver's tool lists all."""
    tool = folder / "rocm_agent_enumerator"
    tool.write_text("#!/bin/sh\necho gfx000\necho gfx906\necho gfx90a\necho gfx9-4-generic\n")
    tool.chmod(0o755)
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = f"{folder}:{path}"
        assert [device_access.architecture("hip", index) for index in range(3)] == ["gfx906", "gfx90a", None]
        for index in -1, 2:
            assert device_access.architecture("hip", index) is None
            assert device_access.index_problem("hip", index) == f"{index} is no GPU: there are 2 GPUs, 0 to 1"
        assert device_access.index_problem("hip", 0) is device_access.index_problem("hip", 1) is None
        os.environ["HIP_VISIBLE_DEVICES"] = "1"
        assert device_access.architecture("hip", 0) == "gfx90a"
        assert device_access.index_problem("hip", 1) == "1 is no GPU: HIP_VISIBLE_DEVICES shows 1 GPU, 0"
        os.environ["HIP_VISIBLE_DEVICES"] = "GPU-0123"
        assert device_access.architecture("hip", 0) == "gfx906"
    finally:
        os.environ["PATH"] = path
        os.environ.pop("HIP_VISIBLE_DEVICES", None)
    (folder / "none").mkdir()
    try:  # without the driver's tools nobody knows how many there are
        os.environ["PATH"] = str(folder / "none")
        assert device_access.index_problem("hip", 7) is None
        assert device_access.index_problem("cuda", -1) == "-1 is no GPU: they are counted from 0"
    finally:
        os.environ["PATH"] = path


def check_machines():
    shipped = shipped_machines.shipped_gpus(source)
    assert "mi50" in shipped and "h200" in shipped and "x86-server" not in shipped
    assert not any("gfx11" in description for description in shipped.values()), shipped
    for name in None, "mi50", "MI50", str(source / "hwmodels" / "mi50.yaml"):
        assert shipped_machines.like_problem(name, source) is None, name
    assert "did you mean 'z100'?" in shipped_machines.like_problem("z10", source)
    for name in "strix-halo", "x86-server", "no such machine":
        assert "--machines lists them" in shipped_machines.like_problem(name, source), name


def check_everything_missing_is_named(folder):
    """In the order in which it is found, a line each, before anything is built."""
    (folder / "bin").mkdir()
    done = subprocess.run([sys.executable, source / "scripts" / "gpu-validate", "hip", "-1", "--like", "z10", "--build",
                           folder / "build"], capture_output=True, text=True, check=False,
                          env=os.environ | {"PATH": str(folder / "bin")})
    assert done.returncode == 1 and not done.stdout and not (folder / "build").exists(), done
    found = done.stderr.splitlines()
    parts = ["--like", "-1 is no GPU", "/dev/kfd", "hipcc is not in PATH", "ninja is not in PATH"]
    if pathlib.Path("/dev/kfd").exists():
        parts.remove("/dev/kfd")
        found = [line for line in found if "/dev/" not in line]
    assert len(found) == len(parts) and all(part in line for part, line in zip(parts, found)), done.stderr
    assert all(line.startswith("gpu-validate: ") for line in found), done.stderr
    for words, part in (["hip:7", "1"], "unrecognized arguments: 1"), (["host-gpu", "3"], "host-gpu is one device"):
        done = subprocess.run([sys.executable, source / "scripts" / "gpu-validate", *words, "--build", folder / "build"],
                              capture_output=True, text=True, check=False)
        assert done.returncode and part in done.stderr, done


def check_help():
    """Each tells how it is used, once, and gpu-validate what it takes."""
    help_of = {}
    for name in "gpu-validate", "install-packages":
        done = subprocess.run([source / "scripts" / name, "--help"], capture_output=True, text=True, check=True)
        assert done.stdout.lower().count("usage:") == 1 and not done.stderr, done
        help_of[name] = done.stdout
    for part in "3 GB of disk", "16 GB", "an hour", "five minutes", "an NVIDIA GPU", "counted from 0":
        assert part in help_of["gpu-validate"], part
    for option in "--gpu", "--hip", "--test", "--web", "--coverage":
        assert f"\n  {option} " in help_of["install-packages"], option


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
    results_archive.write_letter(results, False, {"device": "a GPU"}, ["decode attention: holds"], ["In short", "fitted  3.0%"])
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
    for part in "# Results of a GPU", "| device | a GPU |", "- decode attention: holds", "```\nIn short\nfitted  3.0%\n```", "`machine.yaml`", "open an issue":
        assert part in letter, (part, letter)
    assert "where you got dculab" in letter and "If you cannot open one" in letter, letter
    assert "EMULATED" not in letter and "diary" not in letter and "`README.md`" in letter


def check_address(folder):
    """The clone's own address is shown, unless it says more than that."""
    clone = folder / "clone"
    run = lambda *words: subprocess.run(["git", "-C", str(clone), *words], check=True, capture_output=True)
    clone.mkdir()
    run("init")
    assert results_archive.address(clone) is None
    run("remote", "add", "origin", "x")
    for url, shown in (("https://example.org/a/dculab.git", True), ("git@example.org:a/dculab.git", True),
                       ("https://jo:secret@example.org/a.git", False), ("/home/jo/dculab", False)):
        run("remote", "set-url", "origin", url)
        assert results_archive.address(clone) == (url if shown else None), url
    try:  # as in a container
        os.environ["GIT_TEST_ASSUME_DIFFERENT_OWNER"] = "1"
        run("-c", "user.name=jo", "-c", "user.email=jo", "-c", "safe.directory=*", "commit", "--allow-empty", "-m", "x")
        assert re.fullmatch("[0-9a-f]{40}", results_archive.git_line(clone, "rev-parse", "HEAD"))
    finally:
        os.environ.pop("GIT_TEST_ASSUME_DIFFERENT_OWNER")


def check_log(folder):
    tool = folder / "some-smi"
    tool.write_text("#!/bin/sh\necho 1319 MHz\n")
    tool.chmod(0o755)
    log = folder / "device-log.txt"
    tools = ["no-such-smi"], [str(tool)]
    with DeviceLog(log, "short", tools=tools, seconds_between=3600):
        pass  # over before the second time
    assert log.read_text().count("== short, ") == 1 and "1319 MHz" in log.read_text(), log.read_text()
    with DeviceLog(log, "long", tools=tools, seconds_between=0.01):
        until = time.monotonic() + 20
        while log.read_text().count("== long, ") < 2 and time.monotonic() < until:
            time.sleep(0.01)
    assert log.read_text().count("== long, ") >= 2, log.read_text()
    with DeviceLog(folder / "none.txt", "decode", tools=(["no-such-smi"],)):
        pass
    assert not (folder / "none.txt").exists()


def check_progress():
    """A command that says nothing is said to run."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        assert running.run([sys.executable, "-c", "import time; time.sleep(1)"], seconds_between=0.01)
        assert running.run([sys.executable, "-c", "print('quick')"])
    assert "   ... running for 0 s\n" in said.getvalue() and said.getvalue().endswith("\nquick\n"), said.getvalue()
    grid = validation_grids.FULL_GRIDS
    assert [validation_grids.step_count(each) for each in grid.values()] == [378, 126, 126, 84]


def check_aims():
    log = "aim: decode attention: lowest 80.5 %, at least 75 % of copy\naim: GPTQ GEMV: lowest 60.0 %, at least 70 % of copy\n"
    aims = measured_aims.verdicts(log, {"held_out_ops": {"attention_decode": {"median_abs_error": 0.05}}})
    assert [aim["holds"] for aim in aims.values()] == [True, False, True], aims
    assert measured_aims.line("GPTQ GEMV", aims["GPTQ GEMV"]) == \
        "GPTQ GEMV: 60.0%, aim 70%: lowest share of the copy bandwidth: DOES NOT HOLD"
    assert measured_aims.line("GPTQ GEMV", aims["GPTQ GEMV"], {"reached": 0.28, "aim": 0.7}).endswith(
        "DOES NOT HOLD (NVIDIA H200: 28.0%)")
    without = measured_aims.verdicts("", {"held_out_ops": {}})
    assert not any(aim["holds"] for aim in without.values()) and len(without) == 3, without


with tempfile.TemporaryDirectory() as name:
    here = pathlib.Path(name)
    check_devices(here)
    check_compilers()
    (here / "tools").mkdir()
    check_build_tools(here / "tools")
    check_which_gpu(here)
    check_architectures_and_disks(here)
    check_machines()
    check_everything_missing_is_named(here)
    check_help()
    check_archive(here)
    if shutil.which("git"):
        check_address(here)
    check_log(here)
    check_progress()
    check_aims()
    words = dict(results_archive.private_words(source))
    assert words[str(source)] == "<dculab>", words
    assert results_archive.file_line(here / "none") is None
