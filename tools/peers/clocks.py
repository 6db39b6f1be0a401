"""clocks.py - two clocks for a call over rotating copies, in seconds.

single  one call, median. CUDA: events around it, enqueued while the device is still busy, so that no launch is waited
        for. CPU: wall time.
steady  many calls in a row, per call. CUDA: replays of one graph of them. CPU: wall time.
"""

import statistics
import time

import torch

SINGLE_REPEATS = 30
STEADY_CALLS = 200
STEADY_ROUNDS = 5
CPU_STEADY_ROUNDS = 3
STEADY_SECONDS = 1.0
MIN_STEADY_CALLS = 10
WARM_SECONDS = 0.05
# About a millisecond of a busy device: the host has enqueued the call and both events by then.
SLEEP_CYCLES = 2_000_000


def num_calls(seconds):
    """Calls of one row: fewer where they are slow."""
    return max(MIN_STEADY_CALLS, min(STEADY_CALLS, int(STEADY_SECONDS / max(seconds, 1e-9))))


def whole_rounds(calls, copies):
    """About as many calls that end where they began, so that replays find every copy as cold as the first did."""
    return max(1, round(calls / copies)) * copies


class CudaClocks:
    """Both clocks of a CUDA device."""

    def __init__(self):
        self.start, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def between(self, run):
        torch.cuda.synchronize()
        torch.cuda._sleep(SLEEP_CYCLES)
        self.start.record()
        run()
        self.end.record()
        self.end.synchronize()
        return 1e-3 * self.start.elapsed_time(self.end)

    def single(self, call, copies, repeats=SINGLE_REPEATS):
        warm_up(call, copies, torch.cuda.synchronize)
        return statistics.median(self.between(lambda: call(i % copies)) for i in range(repeats))

    def empty(self):
        """What the events alone take."""
        return statistics.median(self.between(lambda: None) for _ in range(SINGLE_REPEATS))

    def steady(self, call, copies, single):
        """Seconds, and how the calls were put in a row."""
        calls = whole_rounds(num_calls(single), copies)
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                for i in range(calls):
                    call(i % copies)
            run, mode = graph.replay, f"graph of {calls} calls"
        except RuntimeError as error:
            torch.cuda.synchronize()
            mode = f"{calls} calls in a row, no graph: {first_line(error)}"

            def run():
                for i in range(calls):
                    call(i % copies)
        run()
        return statistics.median(self.between(run) for _ in range(STEADY_ROUNDS)) / calls, mode


class CpuClocks:
    """Both clocks of the CPU."""

    def single(self, call, copies, repeats=SINGLE_REPEATS):
        warm_up(call, copies, lambda: None)
        times = []
        for i in range(repeats):
            before = time.perf_counter()
            call(i % copies)
            times.append(time.perf_counter() - before)
        return statistics.median(times)

    def empty(self):
        return 0.0

    def steady(self, call, copies, single):
        calls = num_calls(single)
        times = []
        for row in range(CPU_STEADY_ROUNDS):
            before = time.perf_counter()
            for i in range(row * calls, (row + 1) * calls):
                call(i % copies)
            times.append((time.perf_counter() - before) / calls)
        return statistics.median(times), f"{calls} calls in a row"


def warm_up(call, copies, synchronize):
    """Each copy once, for what a library does once per address, and on for a while, for the clock rates."""
    end = time.perf_counter() + WARM_SECONDS
    done = 0
    while done < copies or time.perf_counter() < end:
        call(done % copies)
        done += 1
        synchronize()


def first_line(error):
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
