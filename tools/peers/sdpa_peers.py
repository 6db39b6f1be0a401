"""sdpa_peers.py - PyTorch's scaled_dot_product_attention: flash, cuDNN and math.

Query heads of one KV head are grouped in one of two ways, whichever is faster: by the backend itself (enable_gqa), or
as further queries of that head (folded), a view of q. Neither copies K or V, except that math repeats them under
enable_gqa. A window is a slice of K and V. PyTorch has no pages here: such problems run on contiguous K and V, and say
so.
"""

import contextlib
import functools

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right

from inputs import visible
from peer import Call, Peer, Refused, refuse

NO_PAGES = "contiguous K and V, no pages"


def sliced(inputs):
    """The keys that some query sees, of every copy."""
    first = inputs.problem.first_key
    return [(k[:, :, first:], v[:, :, first:]) if first else (k, v) for k, v in inputs.copies]


def notes(problem, *others):
    return "; ".join(([NO_PAGES] if problem.page_size else []) + [note for note in others if note])


def open_native(backend, inputs):
    """One query head per row of q, groups by the backend."""
    problem = inputs.problem
    refuse(problem, softcap="no softcap", sinks="no sinks")
    mask = visible(problem, inputs.device)
    if mask is not None and backend is SDPBackend.FLASH_ATTENTION:
        if problem.window or inputs.device.type == "cpu":
            raise Refused("no window of more than one query" if problem.window else "no causal mask past the diagonal")
        mask = causal_lower_right(problem.q_len, problem.kv_len)
    copies, grouped, q = sliced(inputs), problem.ratio > 1, inputs.q

    def run(i):
        k, v = copies[i]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)

    return Call(run, context=functools.partial(sdpa_kernel, backend), note=notes(problem))


def open_folded(backend, inputs):
    """Query heads of a group as queries of its KV head: exact, as queries do not know of each other."""
    problem = inputs.problem
    refuse(problem, softcap="no softcap", sinks="no sinks")
    if problem.ratio == 1:
        raise Refused("nothing to fold")
    mask = visible(problem, inputs.device)
    if mask is not None:
        if backend is SDPBackend.FLASH_ATTENTION:
            raise Refused("no mask")
        mask = mask.repeat(problem.ratio, 1)
    q = inputs.q.reshape(problem.batch, problem.num_kv_heads, problem.ratio * problem.q_len, problem.head_dim)
    copies = sliced(inputs)

    def run(i):
        k, v = copies[i]
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    return Call(run, result=lambda raw: raw.reshape(inputs.q.shape), context=functools.partial(sdpa_kernel, backend),
                note=notes(problem))


def open_flash_sinks(inputs):
    """Flash attention with its log-sum-exp, by which the sinks scale the result afterwards."""
    problem = inputs.problem
    refuse(problem, softcap="no softcap", causal="no causal mask with sinks here")
    if not problem.sinks or problem.q_len > 1:
        raise Refused("for one query with sinks")
    sinks = inputs.sinks[:, None]
    copies, q = sliced(inputs), inputs.q

    def run(i):
        k, v = copies[i]
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention(q, k, v)[:2]
        return out * torch.sigmoid(lse - sinks)[..., None].to(out.dtype)

    return Call(run, note=notes(problem, "sinks by four elementwise kernels"))


def sdpa_ways(backend, name):
    return {f"{name} enable_gqa": functools.partial(open_native, backend),
            f"{name} folded": functools.partial(open_folded, backend)}


def make_peers():
    flash = sdpa_ways(SDPBackend.FLASH_ATTENTION, "flash")
    math = sdpa_ways(SDPBackend.MATH, "math")
    peers = [
        Peer("flash", "cuda", flash | {"flash, then sinks": open_flash_sinks}),
        Peer("cudnn", "cuda", sdpa_ways(SDPBackend.CUDNN_ATTENTION, "cudnn")),
        Peer("math", "cuda", math),
    ]
    return peers + [Peer(f"sdpa_{type_name}", "cpu", flash | math, type_name) for type_name in ("f32", "f16", "bf16")]
