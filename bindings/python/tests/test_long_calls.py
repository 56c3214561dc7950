"""Calls that take long: other threads go on, progress is shown, and Ctrl-C ends them."""

import os
import signal
import threading
import time

import pytest

import dculab
from dculab import _progress

LONG = "search/million_points"  # a minute or so


@pytest.fixture(autouse=True)
def ctrl_c_raises():
    """Also where whoever started the tests ignores the signal, as shells do for what runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_soon():
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_interruption_ends_the_work():
    for threads in (1, 2):
        interrupt_soon()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            dculab.study(LONG, threads=threads, progress=False)
        print(f"{threads} threads: ended {1000 * (time.monotonic() - began - 0.3):.0f} ms after the signal")
    assert dculab.predict("llama-3-8b", "z100").step_seconds > 0


def test_interruption_within_one_simulation():
    many = {"workload.requests": 1_000_000, "workload.requests_per_second": 1}
    interrupt_soon()
    with pytest.raises(KeyboardInterrupt):
        dculab.simulate("serving/llama3_on_z100", set=many, intervals=False, progress=False)


def test_other_threads_go_on():
    looks = []
    stop = threading.Event()

    def look():
        while not stop.is_set():
            looks.append(dculab.predict("llama-3-8b", "z100").step_seconds)

    thread = threading.Thread(target=look)
    interrupt_soon()
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        dculab.study(LONG, threads=1, progress=False)
    stop.set()
    thread.join()
    assert len(looks) > 1 and len(set(looks)) == 1


def test_progress_is_told():
    told = []

    def listen(label, share):
        told.append((label, share))
        if len(told) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        dculab.study(LONG, threads=2, progress=listen)
    shares = [share for _, share in told]
    assert told[0][0] == "predicting points"
    assert shares == sorted(shares) and 0 < shares[-1] < 1


def test_an_exception_of_the_listener_ends_the_work():
    def refuse(label, share):
        raise RuntimeError(f"enough of {label}")

    with pytest.raises(RuntimeError, match="enough of predicting points"):
        dculab.study(LONG, threads=1, progress=refuse)


def test_a_bar_for_who_looks_on(capsys, monkeypatch):
    monkeypatch.setattr(_progress, "SILENT_SECONDS", 0.0)
    with _progress.shown(True) as bar:
        bar("predicting points", 0.5)
    assert "50 %  predicting points" in capsys.readouterr().err
    with _progress.shown(False) as nothing:
        assert nothing is None
