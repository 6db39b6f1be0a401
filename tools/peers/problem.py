"""problem.py - the problems of `clfd bench`, as far as peers can run them, and the sets of problems.txt."""

import dataclasses
import os
import re

PROBLEMS_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "problems.txt")

TYPE_BYTES = {"f32": 4, "f16": 2, "bf16": 2}

# Words with a number, and the field that each one sets.
NUMBERS = {"b": "batch", "q": "q_len", "hq": "num_q_heads", "hkv": "num_kv_heads", "d": "head_dim", "kv": "kv_len",
           "page=": "page_size", "window=": "window"}
FLAGS = ("causal", "sinks")
# Words of how clfd cuts its work or lays out K and V, not of what is computed; peers have K and V as bhsd.
IGNORED = re.compile(r"(splits|tokens)=\d+$|bhsd$")


@dataclasses.dataclass
class Problem:
    """One problem; `others` are words that no peer has an answer to."""

    text: str
    batch: int = 1
    q_len: int = 1
    num_q_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    kv_len: int = 0
    type: str = "f32"
    page_size: int = 0
    window: int = 0
    softcap: float = 0.0
    causal: bool = False
    sinks: bool = False
    others: tuple = ()

    @property
    def ratio(self):
        """Query heads per KV head."""
        return self.num_q_heads // self.num_kv_heads

    @property
    def first_key(self):
        """The first key that some query sees; the last query stands at the last key."""
        return max(0, self.kv_len - self.q_len + 1 - self.window) if self.window else 0

    @property
    def num_keys(self):
        """Keys that some query sees, in each sequence."""
        return self.kv_len - self.first_key

    def read_bytes(self, type_name=None):
        """Bytes of K and V that one decode must read, stored in the problem's type or another."""
        return 2 * self.batch * self.num_keys * self.num_kv_heads * self.head_dim * TYPE_BYTES[type_name or self.type]


def set_word(problem, word):
    number = re.fullmatch(r"(b|q|hq|hkv|d|kv|page=|window=)(\d+)", word)
    if number:
        setattr(problem, NUMBERS[number[1]], int(number[2]))
    elif word in TYPE_BYTES:
        problem.type = word
    elif word in FLAGS:
        setattr(problem, word, True)
    elif word.startswith("softcap="):
        problem.softcap = float(word[len("softcap="):])
    elif not IGNORED.match(word):
        problem.others += (word,)


def parse(text):
    """A problem from its words. ValueError: sizes that are missing or do not fit; clfd checks the syntax itself."""
    words = text.split()
    problem = Problem(" ".join(words))
    for word in words:
        set_word(problem, word)
    problem.num_kv_heads = problem.num_kv_heads or problem.num_q_heads
    sizes = (problem.batch, problem.q_len, problem.num_q_heads, problem.num_kv_heads, problem.head_dim, problem.kv_len)
    if min(sizes) < 1 or problem.num_q_heads % problem.num_kv_heads:
        raise ValueError(f"'{problem.text}': hq, d and kv are required, and hq must be a multiple of hkv")
    return problem


def read_sets(path=PROBLEMS_FILE):
    """{name: [text, ...]} of a file of problems, in its order."""
    sets, current = {}, None
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.split("#")[0].strip()
            heading = re.fullmatch(r"\[(\w+)\]", line)
            if heading:
                current = sets.setdefault(heading[1], [])
            elif line and current is None:
                raise ValueError(f"{path}:{number}: a problem before the first set")
            elif line:
                current.append(line)
    return sets


def choose(names, path=PROBLEMS_FILE):
    """The problems of some sets. ValueError: no such set."""
    sets = read_sets(path)
    unknown = [name for name in names if name not in sets]
    if unknown:
        raise ValueError(f"no set {unknown[0]} in {path}; it has {', '.join(sets)}")
    return [text for name in names for text in sets[name]]
