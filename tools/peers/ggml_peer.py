"""ggml_peer.py - llama.cpp's flash attention on the CPU: ggml_flash_attn_ext, called through ggml's shared libraries.

K and V are the tensors of the other peers, in place: ggml's [dim, key, head, batch], innermost first, is PyTorch's
[batch, head, key, dim]. q and the result are float, as llama.cpp has them.
"""

import ctypes
import functools
import glob
import importlib.util
import math
import os

import torch

from inputs import visible
from peer import Call, Peer, Refused
from sdpa_peers import notes

POINTER, SIZE, LONG, FLOAT = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64, ctypes.c_float

# enum ggml_type
GGML_TYPES = {"f32": 0, "f16": 1, "bf16": 30}
# Rows that a mask must have at least a multiple of, in older versions.
MASK_ROWS = 64
# Enough for what describes the tensors and one graph; the tensors themselves lie outside.
CONTEXT_BYTES = 16 << 20
STATUS_SUCCESS = 0


class InitParameters(ctypes.Structure):
    _fields_ = [("mem_size", SIZE), ("mem_buffer", POINTER), ("no_alloc", ctypes.c_bool)]


# name: (result, arguments)
FUNCTIONS = {
    "ggml_init": (POINTER, [InitParameters]),
    "ggml_free": (None, [POINTER]),
    "ggml_new_tensor": (POINTER, [POINTER, ctypes.c_int, ctypes.c_int, ctypes.POINTER(LONG)]),
    "ggml_view_4d": (POINTER, [POINTER, POINTER] + [LONG] * 4 + [SIZE] * 4),
    "ggml_flash_attn_ext": (POINTER, [POINTER] * 5 + [FLOAT] * 3),
    "ggml_flash_attn_ext_add_sinks": (None, [POINTER, POINTER]),
    "ggml_new_graph": (POINTER, [POINTER]),
    "ggml_build_forward_expand": (None, [POINTER, POINTER]),
    "ggml_backend_cpu_init": (POINTER, []),
    "ggml_backend_cpu_set_n_threads": (None, [POINTER, ctypes.c_int]),
    "ggml_backend_cpu_buffer_from_ptr": (POINTER, [POINTER, SIZE]),
    "ggml_backend_buffer_free": (None, [POINTER]),
    "ggml_backend_tensor_alloc": (ctypes.c_int, [POINTER, POINTER, POINTER]),
    "ggml_backend_view_init": (ctypes.c_int, [POINTER]),
    "ggml_backend_graph_compute": (ctypes.c_int, [POINTER, POINTER]),
}


def find_folder():
    """Where llama-cpp-python keeps the libraries; not imported, as that loads far more."""
    package = importlib.util.find_spec("llama_cpp")
    if package is None:
        raise Refused("llama-cpp-python is not installed, and no --ggml names a folder")
    return os.path.join(os.path.dirname(package.origin), "lib")


@functools.lru_cache
def load(folder):
    """ggml's functions by name, and a CPU backend."""
    functions, libraries = {}, []
    for name in ("ggml-base", "ggml-cpu"):
        paths = sorted(glob.glob(os.path.join(folder or find_folder(), f"lib{name}.*")), key=len)
        if not paths:
            raise Refused(f"no lib{name} in {folder or find_folder()}")
        libraries.append(ctypes.CDLL(paths[0], mode=ctypes.RTLD_GLOBAL))
    for name, (result, arguments) in FUNCTIONS.items():
        found = [getattr(library, name) for library in libraries if hasattr(library, name)]
        if not found:
            raise Refused(f"this ggml has no {name}")
        found[0].restype, found[0].argtypes = result, arguments
        functions[name.removeprefix("ggml_")] = found[0]
    return functions, functions["backend_cpu_init"]()


class Graphs:
    """A graph of one flash attention for each copy. Frees what it made when it goes."""

    def __init__(self, inputs, functions):
        self.inputs, self.ggml = inputs, functions
        self.context, self.tensors, self.buffers = None, [], []  # tensors: PyTorch's, which ggml's point into
        self.context = self.ggml["init"](InitParameters(CONTEXT_BYTES + (1 << 18) * len(inputs.copies), None, True))
        problem = inputs.problem
        self.q = self.place(inputs.q.float().contiguous(), "f32")
        self.mask = self.make_mask(visible(problem, inputs.device))
        self.sinks = self.place(inputs.sinks, "f32") if problem.sinks else None
        # [dim, head, query, batch] by ggml's order.
        self.out = torch.full((problem.batch, problem.q_len, problem.num_q_heads, problem.head_dim), math.nan)
        self.graphs = [self.make_graph(k, v) for k, v in inputs.copies]

    def __del__(self):
        for buffer in self.buffers:
            self.ggml["backend_buffer_free"](buffer)
        self.ggml["free"](self.context)

    def allocate(self, made, tensor):
        """Lets a tensor of ggml's live in PyTorch's memory."""
        size = tensor.numel() * tensor.element_size()
        buffer = self.ggml["backend_cpu_buffer_from_ptr"](tensor.data_ptr(), size)
        self.buffers.append(buffer)
        self.tensors.append(tensor)
        self.ggml["backend_tensor_alloc"](buffer, made, tensor.data_ptr())

    def place(self, tensor, type_name):
        sizes = (LONG * tensor.dim())(*reversed(tensor.shape))
        made = self.ggml["new_tensor"](self.context, GGML_TYPES[type_name], tensor.dim(), sizes)
        self.allocate(made, tensor)
        return made

    def make_mask(self, mask):
        """f16 [key, query padded], 0 where a query sees a key, else -inf."""
        if mask is None:
            return None
        rows = -(-mask.shape[0] // MASK_ROWS) * MASK_ROWS
        values = torch.full((rows, mask.shape[1]), -math.inf, dtype=torch.float16)
        values[:mask.shape[0]].masked_fill_(mask, 0)
        return self.place(values, "f16")

    def place_cache(self, tensor):
        """K or V, from the first key on that some query sees."""
        whole, first = self.place(tensor, self.inputs.type), self.inputs.problem.first_key
        if first == 0:
            return whole
        batch, heads, _, dim = tensor.shape
        strides = [stride * tensor.element_size() for stride in tensor.stride()]
        view = self.ggml["view_4d"](self.context, whole, dim, self.inputs.problem.num_keys, heads, batch, strides[2],
                                    strides[1], strides[0], first * strides[2])
        self.ggml["backend_view_init"](view)
        return view

    def make_graph(self, k, v):
        problem = self.inputs.problem
        attention = self.ggml["flash_attn_ext"](self.context, self.q, self.place_cache(k), self.place_cache(v),
                                                self.mask, 1 / math.sqrt(problem.head_dim), 0.0, problem.softcap)
        if self.sinks is not None:
            self.ggml["flash_attn_ext_add_sinks"](attention, self.sinks)
        self.allocate(attention, self.out)
        graph = self.ggml["new_graph"](self.context)
        self.ggml["build_forward_expand"](graph, attention)
        return graph


def open_ggml(folder, inputs):
    functions, backend = load(folder)
    functions["backend_cpu_set_n_threads"](backend, torch.get_num_threads())
    graphs, compute = Graphs(inputs, functions), functions["backend_graph_compute"]

    def run(i):
        status = compute(backend, graphs.graphs[i])
        if status != STATUS_SUCCESS:
            raise Refused(f"ggml_backend_graph_compute returned {status}")
        return graphs.out

    return Call(run, result=lambda raw: raw.transpose(1, 2), note=notes(inputs.problem))


def make_peers(folder):
    return [Peer(f"llama_{type_name}", "cpu", {"flash_attn_ext": functools.partial(open_ggml, folder)}, type_name)
            for type_name in GGML_TYPES]
