"""Packs what scripts/gpu-validate found into results.tar.gz, with a letter that says what it is and where it goes.

Only the files of CONTENTS are packed. Paths of this machine, its name and the user's become placeholders in texts. The
program reads such an archive: config/results_archive.hpp.
"""

import getpass
import gzip
import io
import json
import os
import pathlib
import platform
import re
import shutil
import socket
import subprocess
import tarfile
import tempfile

CONTENTS = {  # file or pattern -> what it is
    "README.md": "this text",
    "environment.json": "operating system, driver, compiler and version of dculab",
    "probe.json": "what `dculab probe` measured",
    "machine.yaml": "the machine file made of it",
    "verdicts.json": "what was aimed at, and what was reached",
    "gpu_bench.txt": "the kernels against the device's limits",
    "device-log.txt": "clocks, power and temperature while the traces were recorded, by the vendor's tool",
    "before.txt": "measured against predicted, before any fit",
    "held-out.txt": "the same for the half of the steps that the fit did not see",
    "held-out.json": "the same, for programs",
    "*.jsonl.gz": "traces: the measured time of every operation of steps of a model with random weights",
    "others/*.jsonl.gz": "the same in other number formats and of other model families",
    "others/before.txt": "measured against predicted, of those",
}
LETTER = """# {title}

Please open an issue where you got dculab. Its title is the heading above, its text is this file, and `results.tar.gz` is
attached. If you cannot open one there, send `results.tar.gz` to whoever gave you dculab.

To read it: `dculab validate results.tar.gz --worst 10` and `dculab calibrate results.tar.gz`.

{emulated}| | |
|---|---|
{facts}

```
{short}
```

{verdicts}

## In the archive

{contents}

Not in it: names of the user and of the computer, paths, serial numbers, weights, prompts. Look for yourself:
`tar xzOf results.tar.gz | less`.
"""
EMULATED = "**EMULATED: a host that plays a GPU. The figures mean nothing; do not send them.**\n\n"


def first_line(command, **options):
    if shutil.which(command[0]) is None:
        return None
    lines = subprocess.run(command, capture_output=True, text=True, check=False, **options).stdout.splitlines()
    return next((line.strip() for line in lines if line.strip()), None)


def file_line(path, key=""):
    """The first line that begins with the key, without it."""
    try:
        lines = pathlib.Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line[len(key):].strip(' ":\t') for line in lines if line.startswith(key)), None)


def git_line(root, *words):
    """What git says of a clone, also of one that is somebody else's: in a container it often belongs to the host's user.
    That it may be read is told in a file, for git 2.34 does not hear it from -c."""
    with tempfile.NamedTemporaryFile("w", suffix=".gitconfig") as settings:
        settings.write("[safe]\n\tdirectory = *\n")
        settings.flush()
        return first_line(["git", "-C", str(root), *words], env=os.environ | {"GIT_CONFIG_GLOBAL": settings.name})


def address(root):
    """Where this clone comes from, unless that is a folder or has a password in it."""
    url = git_line(root, "remote", "get-url", "origin") or ""
    return url if re.fullmatch(r"https://[^@]+|git@[^@]+", url) else None


def environment(dculab, root):
    found = {
        "dculab": first_line([str(dculab), "--version"]),
        "commit": git_line(root, "rev-parse", "HEAD"),
        "system": file_line("/etc/os-release", "PRETTY_NAME="),
        "kernel": platform.release(),
        "cpu": file_line("/proc/cpuinfo", "model name"),
        "amdgpu": file_line("/sys/module/amdgpu/version"),
        "hydcu": file_line("/sys/module/hydcu/version"),
        "nvidia": file_line("/sys/module/nvidia/version"),
        "hipcc": first_line(["hipcc", "--version"]),
        "nvcc": first_line(["nvcc", "--version"]),
        "rocm": file_line("/opt/rocm/.info/version"),
    }
    return {key: value for key, value in found.items() if value}


def private_words(root):
    """What may not leave this machine -> what stands in its place. Longer ones first."""
    words = {str(root): "<dculab>", str(pathlib.Path.home()): "<home>", socket.gethostname(): "<host>",
             getpass.getuser(): "<user>"}
    usual = {"/", "/root", "root", "localhost", "user", "ubuntu", "docker"}
    return sorted(((word, instead) for word, instead in words.items() if word not in usual and len(word) > 2),
                  key=lambda pair: -len(pair[0]))


def cleaned(name, content, words):
    """Paths go from every text. Names of user and host are common words ("amd", "mi50"), so they go only from texts for
    people: in the others, whose keys are known, they would change a figure's name."""
    if name.endswith(".gz"):
        return gzip.compress(cleaned(name[:-3], gzip.decompress(content), words), mtime=0)
    text = content.decode()
    for word, instead in words:
        if "/" in word:
            text = text.replace(word, instead)
        elif name.endswith((".txt", ".md")):
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", instead, text)
    return text.encode()


def results_in(folder):
    return [path for pattern in CONTENTS for path in sorted(folder.glob(pattern)) if path.is_file()]


def write_letter(folder, emulated, facts, verdicts, short):
    target = folder / "README.md"
    target.touch()  # it lists itself
    contents = [f"- {', '.join(f'`{path.relative_to(folder)}`' for path in paths)}: {meaning}"
                for pattern, meaning in CONTENTS.items() if (paths := sorted(folder.glob(pattern)))]
    target.write_text(LETTER.format(title=f"Results of {facts['device']}", emulated=EMULATED if emulated else "",
                                    facts="\n".join(f"| {key} | {value} |" for key, value in facts.items()),
                                    verdicts="\n".join(f"- {line}" for line in verdicts), short="\n".join(short),
                                    contents="\n".join(contents)))


def pack(folder, top, words):
    """Writes results.tar.gz into the folder, with everything below `top` and without the private words; returns its path
    and the names of what is in it."""
    names = []
    target = folder / "results.tar.gz"
    with gzip.GzipFile(target, "wb", mtime=0) as compressed, \
            tarfile.open(fileobj=compressed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in results_in(folder):
            name = str(path.relative_to(folder))
            content = cleaned(name, path.read_bytes(), words)
            member = tarfile.TarInfo(f"{top}/{name}")  # of owner, group and time it knows nothing
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
            names.append(name)
    return target, names


def write_environment(folder, dculab, root):
    found = environment(dculab, root)
    (folder / "environment.json").write_text(json.dumps(found, indent=2) + "\n")
    return found
