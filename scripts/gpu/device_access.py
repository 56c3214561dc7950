"""What keeps a machine from running scripts/gpu-validate, found before an hour is spent: devices, rights, compilers, disk."""

import os
import pathlib
import re
import shutil
import subprocess

BUILD_BYTES = 3e9  # of a build folder with the tests
RESULT_BYTES = 3e8

OLDEST_CMAKE = 3, 25  # as in CMakeLists.txt

NEW_TOOLS = ("Ubuntu 22.04 and older: pip install cmake ninja (then they must be in PATH). Debian 12, Ubuntu 24.04: "
             "scripts/install-packages --gpu")
NO_HIPCC = ("hipcc is not in PATH. Debian 12: scripts/install-packages --gpu --hip. ROCm: export "
            "PATH=/opt/rocm/bin:$PATH. DTK: source its env.sh")
NO_KFD = ("there is no {0}: this machine has no DCU or AMD GPU, its driver is not loaded, or this is a container that was "
          "started without --device=/dev/kfd --device=/dev/dri")
NO_RIGHT = ("you may not open {0}, which belongs to the group {1}. Run `sudo usermod -aG render,video $USER` and log in "
            "again; in a container add --group-add {2}")
RDNA = ("{0} is an RDNA GPU: its waves have 32 lanes, and the HIP kernels are for waves of 64 (DCUs, MI50 to MI300). What "
        "works there: predictions, `--device host-gpu`, and traces of other engines (docs/howto/import-a-profile.md)")


def ask(command):
    """The lines that a tool prints, or none where there is no such tool."""
    if shutil.which(command[0]) is None:
        return []
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.splitlines()


def visible_numbers(kind):
    """The driver's numbers of the GPUs that the variables of HIP and CUDA show to programs, or none where all are shown.
    They hide nothing from the driver's tools."""
    value = os.environ.get({"hip": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}[kind], "").strip()
    return value.split(",") if value else []


def architectures(kind):
    """Of each GPU of this machine, what to compile for: gfx906, or 80 for compute capability 8.0. Empty where the
    driver's tools do not say."""
    if kind == "cuda":
        lines = ask(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])
        return [line.strip().replace(".", "") for line in lines if re.fullmatch(r"\d+\.\d+", line.strip())]
    # gfx000 is a CPU; gfx9-4-generic stands beside a GPU's own name.
    listed = [re.fullmatch(r"(gfx[0-9a-f]+)(:.*)?", line.strip()) for line in ask(["rocm_agent_enumerator"])]
    told = [re.match(r"\s*Name:\s+(gfx[0-9a-f]+)\s*$", line) for line in ask(["rocminfo"])]
    found = [[match[1] for match in matches if match and match[1] != "gfx000"] for matches in (listed, told)]
    return max(found, key=len)


def architecture(kind, index):
    """What to compile for; nothing where the driver's tools do not say."""
    found, visible = architectures(kind), visible_numbers(kind)
    number = int(visible[index]) if 0 <= index < len(visible) and visible[index].strip().isdigit() else index
    return found[number] if 0 <= number < len(found) else None


def index_problem(kind, index):
    """Why a GPU has not this number, or nothing."""
    count = len(visible_numbers(kind)) or len(architectures(kind))
    if 0 <= index and (index < count or count == 0):
        return None
    if count == 0:
        return f"{index} is no GPU: they are counted from 0"
    of = f"{kind.upper()}_VISIBLE_DEVICES shows" if visible_numbers(kind) else "there are" if count > 1 else "there is"
    return f"{index} is no GPU: {of} {count} GPU{'s' if count > 1 else ''}, {'0 to ' if count > 1 else ''}{count - 1}"


def group_of(path):
    """The group's name, as `ls -l` shows it, and its number."""
    number = path.stat().st_gid
    try:
        return path.group(), number
    except KeyError:  # a container does not know the host's groups
        return str(number), number


def device_problem(devices=pathlib.Path("/dev")):
    """Why HIP will find no device, or nothing."""
    kfd = devices / "kfd"
    if not kfd.exists():
        return NO_KFD.format(kfd)
    for path in [kfd, *sorted((devices / "dri").glob("renderD*"))]:
        if not os.access(path, os.R_OK | os.W_OK):
            return NO_RIGHT.format(path, *group_of(path))
    return None


def compiler_problem(kind):
    if kind == "hip" and shutil.which("hipcc") is None:
        return NO_HIPCC
    if kind == "cuda" and shutil.which("nvcc") is None:
        return "nvcc is not in PATH; export PATH=/usr/local/cuda/bin:$PATH"
    return None


def build_tools_problem():
    """Why the build cannot be configured, or nothing. Ubuntu 22.04 has a CMake that is too old."""
    told = re.search(r"version (\d+)\.(\d+)", " ".join(ask(["cmake", "--version"])))
    problems = []
    if told is None:
        problems.append("cmake is not in PATH")
    elif (int(told[1]), int(told[2])) < OLDEST_CMAKE:
        problems.append(f"cmake is {told[1]}.{told[2]}, and {OLDEST_CMAKE[0]}.{OLDEST_CMAKE[1]} is the oldest that will do")
    if shutil.which("ninja") is None:
        problems.append("ninja is not in PATH")
    return f"{', and '.join(problems)}. {NEW_TOOLS}" if problems else None


def architecture_problem(name):
    return RDNA.format(name) if name and re.match(r"gfx1[0-9]", name) else None


def disk_problem(folder, needed):
    """Whether the disk of a folder, which may not be there yet, has so many bytes left."""
    there = next(path for path in [folder, *folder.parents] if path.exists())
    free = shutil.disk_usage(there).free
    if free >= needed:
        return None
    return f"{there} has {free / 1e9:.1f} GB left, and {needed / 1e9:.1f} GB are needed; free some, or name other folders " \
           "with --build and --output"
