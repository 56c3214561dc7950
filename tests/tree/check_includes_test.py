"""Does check_includes.py take a tree whose includes go one way and refuse the others, with what makes a cycle?"""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(__file__).with_name("check_includes.py")
FILLER = {f"core/filler/{number}.hpp": "" for number in range(20)}


def answer(sources: dict[str, str]) -> tuple[int, str]:
    """Exit status and output, of a tree of such files: path -> what it includes, separated by spaces."""
    with tempfile.TemporaryDirectory() as folder:
        for path, includes in (FILLER | sources).items():
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f'#include "{each}"\n' for each in includes.split()))
        done = subprocess.run([sys.executable, CHECKER, folder], stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout


class Includes(unittest.TestCase):
    def test_arrows_between_top_folders(self):
        self.assertEqual(0, answer({"sim/a/x.cpp": "core/filler/1.hpp lower/launch.hpp"})[0])
        status, text = answer({"sim/a/x.cpp": "core/filler/1.hpp engine/kv/y.hpp"})
        self.assertEqual(1, status)
        self.assertIn("sim/a/x.cpp:2: sim must not include engine (engine/kv/y.hpp)", text)

    def test_folders_of_a_folder_go_one_way(self):
        one_way = {"sim/a/x.cpp": "sim/a/x.hpp sim/b/y.hpp", "sim/b/y.cpp": "sim/c/z.hpp", "sim/a/z.cpp": "sim/c/z.hpp"}
        self.assertEqual(0, answer(one_way)[0])
        status, text = answer(one_way | {"sim/c/z.hpp": "core/filler/1.hpp sim/a/x.hpp"})
        self.assertEqual(1, status)
        self.assertIn("sim: a -> c -> a\n    sim/a/z.cpp:1: sim/c/z.hpp\n    sim/c/z.hpp:2: sim/a/x.hpp\n", text)

    def test_a_cycle_of_three_is_told_once(self):
        text = answer({"sim/a/x.hpp": "sim/b/y.hpp", "sim/b/y.hpp": "sim/c/z.hpp",
                       "sim/c/z.hpp": "sim/a/x.hpp"})[1]
        self.assertEqual(["sim: a -> b -> c -> a"], [line for line in text.splitlines() if not line.startswith(" ")])

    def test_two_cycles_are_both_told(self):
        text = answer({"sim/a/x.hpp": "sim/b/y.hpp", "sim/b/y.hpp": "sim/a/x.hpp sim/c/z.hpp",
                       "sim/c/z.hpp": "sim/b/y.hpp"})[1]
        self.assertIn("sim: a -> b -> a\n", text)
        self.assertIn("sim: b -> c -> b\n", text)

    def test_folders_inside_those_too(self):
        status, text = answer({"kernels/gpu/host/a/x.hpp": "kernels/gpu/host/b/y.hpp",
                               "kernels/gpu/host/b/y.hpp": "kernels/gpu/host/a/x.hpp"})
        self.assertEqual(1, status)
        self.assertIn("kernels/gpu/host: a -> b -> a\n", text)

    def test_files_beside_the_folders_are_their_interface(self):
        self.assertEqual(0, answer({"lower/lower.cpp": "lower/vllm/kernels.hpp", "lower/vllm/kernels.hpp": "lower/a.hpp",
                                    "lower/kv/x.hpp": "lower/a.hpp", "lower/a.hpp": "lower/kv/x.hpp"})[0])

    def test_third_parties_are_fenced(self):
        self.assertEqual(1, answer({"sim/a/x.cpp": "yaml-cpp/yaml.h"})[0])
        self.assertEqual(0, answer({"config/x.cpp": "yaml-cpp/yaml.h"})[0])


if __name__ == "__main__":
    unittest.main()
