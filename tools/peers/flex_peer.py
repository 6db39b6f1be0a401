"""flex_peer.py - PyTorch's FlexAttention, compiled by torch.compile."""

import functools

import torch

from peer import Call, Peer, Refused
from sdpa_peers import notes, sliced


@functools.lru_cache
def compiled():
    from torch.nn.attention.flex_attention import flex_attention

    # Every problem is compiled for its own sizes; the default allows eight.
    for limit in ("recompile_limit", "cache_size_limit"):
        if hasattr(torch._dynamo.config, limit):
            setattr(torch._dynamo.config, limit, 256)
    return torch.compile(flex_attention, dynamic=False)


@functools.lru_cache
def softcap_mod(softcap):
    """Cached: torch.compile compiles again for each new function object."""
    if not softcap:
        return None

    def capped(score, batch, head, query, key):
        return softcap * torch.tanh(score / softcap)

    return capped


@functools.lru_cache
def block_mask(q_len, num_keys, causal, window, device):
    """The causal mask and the window of several queries."""
    from torch.nn.attention.flex_attention import create_block_mask

    offset = num_keys - q_len

    def shown(batch, head, query, key):
        in_window = key > query + offset - window if window else key >= 0
        return in_window & (key <= query + offset) if causal else in_window

    return create_block_mask(shown, None, None, q_len, num_keys, device=device)


def open_flex(inputs):
    problem = inputs.problem
    if problem.type == "f32":
        raise Refused("f32 is not measured")
    masked = problem.causal or (problem.window and problem.q_len > 1)
    mask = None
    if masked:
        mask = block_mask(problem.q_len, problem.num_keys, problem.causal, problem.window, str(inputs.device))
    keywords = {"score_mod": softcap_mod(problem.softcap), "block_mask": mask, "enable_gqa": problem.ratio > 1}
    attention, copies, q, sinks = compiled(), sliced(inputs), inputs.q, inputs.sinks[:, None]

    def run(i):
        k, v = copies[i]
        return attention(q, k, v, **keywords)

    def run_sinks(i):
        k, v = copies[i]
        out, lse = attention(q, k, v, return_lse=True, **keywords)
        return out * torch.sigmoid(lse - sinks)[..., None].to(out.dtype)

    if problem.sinks:
        return Call(run_sinks, note=notes(problem, "sinks by four elementwise kernels"))
    return Call(run, note=notes(problem))


def make_peers():
    return [Peer("flex", "cuda", {"flex": open_flex})]
