"""What keeps a machine from running scripts/gpu-validate, found before an hour is spent: devices, rights, compilers, disk."""

import os
import pathlib
import re
import shutil
import subprocess

BUILD_BYTES = 3e9  # of a build folder with the tests
RESULT_BYTES = 3e8

NO_HIPCC = ("hipcc is not in PATH. Debian 12: scripts/install-packages --test --hip. ROCm: export "
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


def number_of(kind, index):
    """The driver's number of a GPU: the variables of HIP and CUDA hide some from programs, and not from these tools."""
    visible = os.environ.get({"hip": "HIP_VISIBLE_DEVICES", "cuda": "CUDA_VISIBLE_DEVICES"}[kind], "").split(",")
    return int(visible[index]) if index < len(visible) and visible[index].strip().isdigit() else index


def architecture(kind, index):
    """What to compile for: gfx906, or 80 for compute capability 8.0; nothing where the driver's tools do not say."""
    if kind == "hip":
        found = [line.strip() for line in ask(["rocm_agent_enumerator"])] or \
            [match[1] for line in ask(["rocminfo"]) if (match := re.match(r"\s*Name:\s+(gfx\w+)", line))]
        found = [name for name in found if name.startswith("gfx") and name != "gfx000"]
    else:
        found = [line.strip().replace(".", "")
                 for line in ask(["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"])]
    number = number_of(kind, index)
    return found[number] if number < len(found) else None


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
