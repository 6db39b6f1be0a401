"""peer.py - what a peer is: a name, a device, and one or more ways to call it."""

import contextlib
import dataclasses
import typing


class Refused(Exception):
    """The peer cannot do the problem; the message says why."""


@dataclasses.dataclass
class Call:
    """One way, ready for a problem's inputs."""

    run: typing.Callable  # run(i): one call over copy i, whose result it returns
    result: typing.Callable = lambda raw: raw  # of what run returned: out [batch, head, query, dim]
    context: typing.Callable = contextlib.nullcontext  # entered around all runs
    note: str = ""  # what it does differently from clfd
    num_copies: int = 0  # that run(i) takes; 0: all of the inputs


@dataclasses.dataclass
class Peer:
    """A system to compare with. The fastest of its ways is what is measured."""

    name: str
    device: str  # "cuda" or "cpu"
    ways: dict  # name: open(inputs) -> Call, which may raise anything
    type: str = ""  # the type that it stores K and V in; "": the problem's


def refuse(problem, **words):
    """Raises Refused where the problem has one of the words, named with the reason."""
    for word, reason in words.items():
        if getattr(problem, word):
            raise Refused(reason)
