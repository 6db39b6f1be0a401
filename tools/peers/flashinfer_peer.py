"""flashinfer_peer.py - FlashInfer's batch decode over pages, where FlashInfer is installed.

It reads pages always: of the problem's size in random order, or of 16 tokens in order where the problem has none.
"""

import functools

import torch

from inputs import DTYPES
from peer import Call, Peer, Refused, refuse

DEFAULT_PAGE = 16
WORKSPACE_BYTES = 256 << 20


def cut_into_pages(tensor, page_size, order):
    """[batch, kv_head, key, dim] to pages [page, kv_head, token, dim], page order[i] holding the i-th."""
    batch, heads, keys, dim = tensor.shape
    pages = tensor.view(batch, heads, keys // page_size, page_size, dim).transpose(1, 2).flatten(0, 1)
    cut = torch.empty_like(pages, memory_format=torch.contiguous_format)
    cut[order] = pages
    return cut


def open_flashinfer(tensor_cores, inputs):
    try:
        import flashinfer
    except ImportError as error:
        raise Refused(f"FlashInfer is not installed: {error}") from error
    problem = inputs.problem
    refuse(problem, sinks="sinks are not measured", causal="several queries are not measured")
    page_size = problem.page_size or DEFAULT_PAGE
    if problem.q_len > 1 or problem.kv_len % page_size:
        raise Refused("one query and whole pages only")
    device, per_sequence = inputs.device, problem.kv_len // page_size
    count = problem.batch * per_sequence
    order = torch.randperm(count, device=device) if problem.page_size else torch.arange(count, device=device)
    copies = [tuple(cut_into_pages(tensor, page_size, order) for tensor in pair) for pair in inputs.copies]
    workspace = torch.zeros(WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(workspace, "HND", use_tensor_cores=tensor_cores)
    indptr = torch.arange(problem.batch + 1, dtype=torch.int32, device=device) * per_sequence
    last = torch.full((problem.batch,), page_size, dtype=torch.int32, device=device)
    wrapper.plan(indptr, order.int(), last, problem.num_q_heads, problem.num_kv_heads, problem.head_dim, page_size,
                 window_left=problem.window - 1, logits_soft_cap=problem.softcap or None,
                 q_data_type=DTYPES[inputs.type], kv_data_type=DTYPES[inputs.type])
    q = inputs.q[:, :, 0].contiguous()
    return Call(lambda i: wrapper.run(q, copies[i]), result=lambda raw: raw[:, :, None],
                note="" if problem.page_size else f"pages of {DEFAULT_PAGE} tokens in order")


def make_peers():
    return [Peer("flashinfer", "cuda", {"tensor cores": functools.partial(open_flashinfer, True),
                                        "CUDA cores": functools.partial(open_flashinfer, False)})]
