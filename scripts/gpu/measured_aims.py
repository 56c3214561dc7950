"""What scripts/gpu-validate aims at, and whether what was measured reaches it."""

import re

LARGEST_ERROR = 0.08  # of decode attention's predictions, median over held-out steps; as in gpu_traces_test.py
NOT_MEASURED = {"figure": "not measured", "reached": None, "aim": None, "holds": False}


def speed_aims(log):
    """From the lines in which gpu_bench sets what was reached beside what is aimed at; shares of the copy bandwidth."""
    found = re.findall(r"^aim: (.+): lowest ([\d.]+) %, at least ([\d.]+) % of copy$", log, flags=re.M)
    return {what: {"figure": "lowest share of the copy bandwidth", "reached": float(lowest) / 100,
                   "aim": float(least) / 100, "holds": float(lowest) >= float(least)} for what, lowest, least in found}


def prediction_aim(held_out):
    attention = held_out["held_out_ops"].get("attention_decode")
    if attention is None:
        return NOT_MEASURED
    error = attention["median_abs_error"]
    return {"figure": "median error on held-out steps", "reached": error, "aim": LARGEST_ERROR,
            "holds": error <= LARGEST_ERROR}


def verdicts(bench_log, held_out):
    """A verdict for each aim. One that nothing was measured for does not hold."""
    aims = {"decode attention": NOT_MEASURED, "GPTQ GEMV": NOT_MEASURED} | speed_aims(bench_log)
    return aims | {"decode attention predictions": prediction_aim(held_out)}


def line(what, aim, h200=None):
    """A verdict in words; `h200`: that of the H200, which is set beside it."""
    figures = f"{aim['reached']:.1%}, aim {aim['aim']:.0%}: " if aim["aim"] else ""
    other = f" (NVIDIA H200: {h200['reached']:.1%})" if h200 and h200["aim"] else ""
    return f"{what}: {figures}{aim['figure']}: {'holds' if aim['holds'] else 'DOES NOT HOLD'}{other}"
