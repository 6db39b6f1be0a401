"""inputs.py - tensors of a problem: copies of K and V that exceed the caches, and the reference in double precision."""

import glob
import math

import torch

# Copies of K and V read this many times the last-level cache together, and never less than the bytes below: the same
# as `clfd bench` rotates over.
ROTATION_CACHES = 4
MIN_ROTATION_BYTES = 256 << 20
MIN_COPIES = 4
# Of copies that are mostly hidden by a window, at most this many times those bytes on the host, where memory is shared
# with everyone, and this part of what is free on a GPU.
MAX_HOST_ROTATIONS = 8
GPU_MEMORY_PART = 0.4
SEED = 1

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


def cache_bytes(device):
    """Bytes of the device's last-level cache; 0 where nobody tells."""
    if device.type == "cuda":
        return getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
    sizes = [0]
    for path in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size"):
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
        units = {"K": 1 << 10, "M": 1 << 20}
        sizes.append(int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text))
    return max(sizes)


def num_copies(read_bytes, copy_bytes, cache, most):
    """Copies of copy_bytes each, of which one call reads read_bytes; `most`: bytes of all together, 0: the host's."""
    wanted = max(MIN_ROTATION_BYTES, ROTATION_CACHES * cache)
    most = most or MAX_HOST_ROTATIONS * wanted
    return max(MIN_COPIES, min(-(-wanted // read_bytes), most // copy_bytes))


class Inputs:
    """q [batch, head, query, dim], copies of (K, V) [batch, kv_head, key, dim], sinks [head]: uniform from -1 to 1,
    seeded."""

    def __init__(self, problem, device, type_name=None):
        self.problem = problem
        self.device = device
        self.type = type_name or problem.type
        self.generator = torch.Generator(device).manual_seed(SEED)
        heads, kv_heads, dim = problem.num_q_heads, problem.num_kv_heads, problem.head_dim
        kv_shape = (problem.batch, kv_heads, problem.kv_len, dim)
        self.q = self.random((problem.batch, heads, problem.q_len, dim)).to(DTYPES[self.type])
        self.sinks = self.random((heads,))
        most = int(GPU_MEMORY_PART * torch.cuda.mem_get_info(device)[0]) if device.type == "cuda" else 0
        copy_bytes = problem.read_bytes(self.type) // problem.num_keys * problem.kv_len
        count = num_copies(problem.read_bytes(self.type), copy_bytes, cache_bytes(device), most)
        first = (self.cache(kv_shape), self.cache(kv_shape))
        self.copies = [first] + [tuple(tensor.clone() for tensor in first) for _ in range(count - 1)]

    def random(self, shape):
        """Floats of the problem's precision, so that tensors of any type compute the same attention."""
        values = torch.empty(shape, dtype=torch.float32, device=self.device)
        return values.uniform_(-1, 1, generator=self.generator).to(DTYPES[self.problem.type]).float()

    def cache(self, shape):
        """Drawn a sequence at a time: a float copy of all of them would not fit beside the cache itself."""
        tensor = torch.empty(shape, dtype=DTYPES[self.type], device=self.device)
        for sequence in tensor:
            sequence.copy_(self.random(sequence.shape))
        return tensor


def visible(problem, device):
    """Bool [query, key] of what a query sees, from first_key on; None: everything."""
    if not problem.causal and (not problem.window or problem.q_len == 1):
        return None
    keys = torch.arange(problem.first_key, problem.kv_len, device=device)
    positions = torch.arange(problem.kv_len - problem.q_len, problem.kv_len, device=device)[:, None]
    mask = torch.ones((problem.q_len, problem.num_keys), dtype=torch.bool, device=device)
    if problem.causal:
        mask &= keys <= positions
    if problem.window:
        mask &= keys > positions - problem.window
    return mask


def reference(inputs):
    """Attention over the first copy in double precision: [batch, head, query, dim]."""
    problem = inputs.problem
    mask = visible(problem, inputs.device)
    k, v = inputs.copies[0]
    shape = (problem.num_kv_heads, problem.ratio, problem.q_len, problem.head_dim)
    sinks = inputs.sinks.double().view(problem.num_kv_heads, problem.ratio, 1, 1)
    out = torch.empty(inputs.q.shape, dtype=torch.float64, device=inputs.device)
    for b in range(problem.batch):
        keys = k[b, :, problem.first_key:].double()
        scores = torch.einsum("grqd,gkd->grqk", inputs.q[b].double().view(shape), keys) / math.sqrt(problem.head_dim)
        if problem.softcap:
            scores = problem.softcap * torch.tanh(scores / problem.softcap)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        if problem.sinks:
            scores = torch.cat((scores, sinks.expand(-1, -1, problem.q_len, -1)), dim=-1)
        weights = torch.softmax(scores, dim=-1)[..., :problem.num_keys]
        out[b] = torch.einsum("grqk,gkd->grqd", weights, v[b, :, problem.first_key:].double()).view(out[b].shape)
    return out


def errors(out, expected):
    """The greatest absolute error, and the relative error of the whole."""
    difference = out.to(expected.device).double() - expected
    return {"max_error_vs_fp64": difference.abs().max().item(),
            "relative_error": (difference.norm() / expected.norm()).item()}
