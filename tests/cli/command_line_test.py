"""Do the completions know every command and option that help prints, in the shells themselves, and does groff accept
the manual pages? Usage: command_line_test.py PROGRAM

bash is asked always, fish where it is installed. zsh completes at a prompt only: its script is parsed and read.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

OPTION = re.compile(r"^  (-[-\w,]+)", re.M)
COMMAND = re.compile(r"^  ([a-z]+) +\S", re.M)
SECTION = re.compile(r"^([A-Z][\w ]+):\n((?:  .*\n|\n)+)", re.M)


def output(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False, **more)
    assert done.returncode == 0 and not done.stderr, f"{command}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def read_help(program, path=()):
    """{("tables", "intensity"): {"--model", ...}} of the program and all its commands."""
    sections = dict(SECTION.findall(output(program, *path, "--help")))
    known = {path: {name for names in OPTION.findall(sections["Options"]) for name in names.split(",")}}
    for title, text in sections.items():
        if title not in ("Options", "Positionals", "Example", "Examples"):
            for command in COMMAND.findall(text):
                known |= read_help(program, (*path, command))
    return known


def questions(known):
    """What is typed, and what must be offered for it."""
    for path, options in known.items():
        yield [*path, "-"], options
        below = {deeper[len(path)] for deeper in known if len(deeper) == len(path) + 1 and deeper[: len(path)] == path}
        if below:
            yield [*path, ""], below
    yield ["predict", "--phase", ""], {"prefill", "decode"}
    yield ["predict", "--machine", "z10"], {"z100"}
    yield ["predict", "--model", "llama-3-"], {"llama-3-8b", "llama-3-70b"}
    yield ["predict", "--stack", "gpt"], {"gpt-fast"}
    yield ["study", "llama3"], {"llama3_on_dcu"}
    yield ["study", "--report", "CMakeL"], {"CMakeLists.txt"}
    yield ["completion", ""], {"bash", "zsh", "fish"}


def in_bash(script, words):
    count = len(words)
    ask = f'source {script}; COMP_WORDS=(dculab "$@"); COMP_CWORD={count}; _dculab; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return set(output("bash", "-c", ask, "bash", *words).split())


def in_fish(script, words):
    typed = " ".join(["dculab", *words])
    lines = output("fish", "--no-config", "-c", f"source {script}; complete -C {repr(typed)}").splitlines()
    return {line.split("\t")[0] for line in lines}


def check_shells(program, known, folder):
    for shell in ("bash", "zsh", "fish"):
        (folder / shell).write_text(output(program, "completion", shell))
    for shell, ask in {"bash": in_bash, "fish": in_fish}.items():
        if not shutil.which(shell):
            print(f"{shell}: left out, it is not installed")
            continue
        for words, wanted in questions(known):
            missing = wanted - ask(folder / shell, words)
            assert not missing, f"{shell}: dculab {' '.join(words)}: not offered: {sorted(missing)}"
    assert "decode" in in_bash(folder / "bash", ["predict", "--phase", "=", "de"]), "bash: --phase=de"
    script = (folder / "zsh").read_text()
    for option in set().union(*known.values()):
        assert f"'*{option}[" in script, f"zsh: {option} is missing"
    if shutil.which("zsh"):
        output("zsh", "-n", str(folder / "zsh"))


def check_pages(program, known, folder):
    output(program, "manual", "--folder", str(folder))
    names = {"-".join(["dculab", *path]) + ".1" for path in known}
    assert {page.name for page in folder.iterdir()} == names, "pages"
    for path, options in known.items():
        page = folder / ("-".join(["dculab", *path]) + ".1")
        text = output("groff", "-k", "-man", "-Tutf8", "-ww", "-rLL=100n", "-P-c", str(page))  # fails on warnings
        plain = re.sub(".\b", "", text)
        for option in options:
            assert re.search(rf"(^|\s){option}(,|\s|$)", plain, re.M), f"{page.name}: {option} is missing"
    assert output(program, "manual", "tables", "intensity") == (folder / "dculab-tables-intensity.1").read_text()


def main(program):
    program = str(pathlib.Path(program).resolve())
    known = read_help(program)
    assert len(known) > 20, "help was not understood"
    os.chdir(pathlib.Path(__file__).resolve().parents[2])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "dculab").symlink_to(program)
        os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
        check_shells(program, known, folder)
        (folder / "pages").mkdir()
        check_pages(program, known, folder / "pages")


if __name__ == "__main__":
    main(sys.argv[1])
