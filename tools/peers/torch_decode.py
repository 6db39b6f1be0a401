#!/usr/bin/env python3
"""torch_decode.py - times what other libraries take for the problems of `clfd bench`, by the same two clocks.

Prints JSON lines: one about the system, then one for each problem and peer, with its times or the reason why it has
none, and an "end" after each problem.
Needs PyTorch; FlashInfer and llama.cpp are measured where they are installed.
"""

import argparse
import contextlib
import gc
import json
import platform
import shutil
import subprocess
import sys
import warnings

import torch

import clocks
import flashinfer_peer
import flex_peer
import ggml_peer
import inputs as tensors
import problem as problems
import sdpa_peers
from peer import Refused

# Measurements that choose the fastest way of a peer.
CHOOSING_REPEATS = 7


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="one quoted argument each; - reads lines")
    parser.add_argument("--set", action="append", default=[], help="a set of problems.txt; may be given several times")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="default: cuda where there is one")
    parser.add_argument("--peers", help="names with commas between; default: all of the device")
    parser.add_argument("--threads", type=int, help="CPU threads; default: PyTorch's own choice")
    parser.add_argument("--ggml", metavar="FOLDER", help="shared libraries of llama.cpp; default: llama-cpp-python's")
    parser.add_argument("--errors", action="store_true", help="also the error against attention in double precision")
    parser.add_argument("--list", action="store_true", help="print the peers and the sets, and exit")
    return parser.parse_args()


def all_peers(arguments):
    return (sdpa_peers.make_peers() + flex_peer.make_peers() + flashinfer_peer.make_peers() +
            ggml_peer.make_peers(arguments.ggml))


def choose_peers(arguments, device):
    peers = [peer for peer in all_peers(arguments) if peer.device == device]
    if arguments.peers is None:
        return peers
    names = arguments.peers.split(",")
    unknown = set(names) - {peer.name for peer in peers}
    if unknown:
        sys.exit(f"torch_decode.py: no peer {', '.join(sorted(unknown))} on {device}; see --list")
    return [peer for peer in peers if peer.name in names]


def command_output(*command):
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def processor_name():
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def describe_system(device):
    system = {"system": "PyTorch", "torch": torch.__version__, "python": platform.python_version()}
    if device.type == "cuda":
        driver = command_output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        system |= {"device": torch.cuda.get_device_name(device), "driver": driver.partition("\n")[0],
                   "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(),
                   "empty_events_us": 1e6 * clocks.CudaClocks().empty()}
    else:
        system |= {"device": processor_name(), "driver": platform.release(), "threads": torch.get_num_threads()}
    return system | {"cache_bytes": tensors.cache_bytes(device)}


class Measurer:
    """Measures problems one after the other. What it chose for a problem once it keeps."""

    def __init__(self, device, want_errors):
        self.device = device
        self.want_errors = want_errors
        self.clocks = clocks.CudaClocks() if device.type == "cuda" else clocks.CpuClocks()
        self.chosen = {}

    def try_ways(self, peer, inputs):
        """(seconds, way) of the ways that work; raises Refused where none does."""
        times, reasons = [], {}  # reason: the ways that have it
        for way, open_way in peer.ways.items():
            try:
                times.append((self.time_way(open_way, inputs), way))
            except Refused as refused:
                reasons.setdefault(str(refused), []).append(way)
            except Exception as error:  # foreign code: whatever it throws is its answer
                reasons.setdefault(clocks.first_line(error), []).append(way)
        if not times:
            raise Refused("; ".join(f"{reason} ({', '.join(ways)})" for reason, ways in reasons.items()))
        return times

    def time_way(self, open_way, inputs):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                call = open_way(inputs)
                with call.context():
                    return self.clocks.single(call.run, len(inputs.copies), CHOOSING_REPEATS)
            except RuntimeError as error:
                # SDPA says why in warnings.
                said = [str(warning.message).split(" (Triggered")[0] for warning in caught]
                raise Refused(" ".join([clocks.first_line(error)] + said)) from error

    def measure(self, peer, inputs):
        key = (inputs.problem.text, peer.name)
        if key not in self.chosen:
            self.chosen[key] = min(self.try_ways(peer, inputs))[1]
        way, copies = self.chosen[key], len(inputs.copies)
        call = peer.ways[way](inputs)
        with call.context(), torch.no_grad():
            single = self.clocks.single(call.run, copies)
            steady, mode = self.clocks.steady(call.run, copies, single)
            result = {"way": way, "single_us": 1e6 * single, "steady_us": 1e6 * steady, "steady_mode": mode}
            if self.want_errors:
                result |= tensors.errors(call.result(call.run(0)), tensors.reference(inputs))
        read = inputs.problem.read_bytes(inputs.type)
        return result | {"single_gbs": 1e-9 * read / single, "steady_gbs": 1e-9 * read / steady,
                         "read_bytes": read, "copies": copies, "note": call.note}

    def run(self, problem, peers):
        """Results of all peers for one problem, one by one."""
        inputs = None
        for peer in peers:
            result = {"problem": problem.text, "peer": peer.name, "type": peer.type or problem.type}
            try:
                if problem.others:
                    raise Refused(f"{problem.others[0]} is not known here")
                if inputs is None or inputs.type != result["type"]:
                    inputs = None  # frees the old ones first
                    inputs = tensors.Inputs(problem, self.device, result["type"])
                result |= self.measure(peer, inputs)
            except Refused as refused:
                result["reason"] = str(refused)
            except Exception as error:  # likewise
                result["reason"] = clocks.first_line(error)
            yield result
            gc.collect()
            if self.device.type == "cuda":
                torch.cuda.empty_cache()
        del inputs
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()


def problem_texts(arguments):
    yield from problems.choose(arguments.set)
    for text in arguments.problems:
        if text == "-":
            yield from (line.strip() for line in sys.stdin if line.strip())
        else:
            yield text


def main():
    arguments = parse_arguments()
    name = arguments.device or ("cuda" if torch.cuda.is_available() else "cpu")
    if arguments.list:
        print("peers:", *(f"{peer.name} ({peer.device})" for peer in all_peers(arguments)))
        print("sets:", *problems.read_sets())
        return
    if name == "cuda" and not torch.cuda.is_available():
        sys.exit("torch_decode.py: PyTorch sees no CUDA device")
    device = torch.device(name, torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    if arguments.threads:
        torch.set_num_threads(arguments.threads)
    torch.set_grad_enabled(False)
    peers = choose_peers(arguments, name)
    if not arguments.problems and not arguments.set:
        arguments.set = ["standard" if name == "cuda" else "cpu"]
    print(json.dumps(describe_system(device)), flush=True)
    measurer = Measurer(device, arguments.errors)
    try:
        for text in problem_texts(arguments):
            for result in measurer.run(problems.parse(text), peers):
                print(json.dumps(result), flush=True)
            print(json.dumps({"end": text}), flush=True)
    except ValueError as error:
        print(f"torch_decode.py: {error}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
