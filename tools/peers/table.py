"""table.py - what `compare` has measured as a table of ratios, as CSV, and as the notes below the table.

A run is {"date", "command", "rounds", "clfd", "peers", "problems"}; each problem has "rounds", a list of
{"clfd": result of clfd bench, "peers": {name: result of torch_decode.py}}. A result without times has a "reason".
"""

import csv
import math
import statistics

CLOCKS = ("single", "steady")


def median(values):
    """The middle of the values that are there; None: there is none."""
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def geometric_mean(values):
    values = [value for value in values if value is not None]
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def time_of(result, clock):
    return None if result is None else result.get(f"{clock}_us")


def peer_names(run):
    """In the order in which they were measured."""
    return list(dict.fromkeys(name for problem in run["problems"] for r in problem["rounds"] for name in r["peers"]))


def peer_times(problem, name, clock):
    """Microseconds of each round; None where the peer has none."""
    return [time_of(r["peers"].get(name), clock) for r in problem["rounds"]]


def clfd_times(problem, clock):
    return [time_of(r["clfd"], clock) for r in problem["rounds"]]


def ratio(problem, name, clock):
    """How many times as long as clfd the peer takes: the median over rounds, each of two neighbours in time."""
    pairs = zip(peer_times(problem, name, clock), clfd_times(problem, clock))
    return median([peer / clfd for peer, clfd in pairs if peer is not None and clfd is not None])


def percent(problem, clock):
    """clfd's share of the plain read of the same round."""
    return median([r["clfd"].get(f"{clock}_percent") for r in problem["rounds"]])


def has_own_type(problem, name):
    """Whether the peer stores K and V in the problem's type."""
    types = {r["peers"][name]["type"] for r in problem["rounds"] if name in r["peers"]}
    return bool(types) and types <= set(problem["problem"].split())


def best(problem, names, clock, own_type):
    """(ratio, name) of the fastest peer; (None, "") where there is none."""
    rows = [(ratio(problem, name, clock), name) for name in names if not own_type or has_own_type(problem, name)]
    return min((row for row in rows if row[0] is not None), default=(None, ""))


def spread(problem, clock):
    """The slowest of clfd's rounds over the fastest."""
    times = [time for time in clfd_times(problem, clock) if time is not None]
    return max(times) / min(times) if times else None


def cell(value, text="{:.2f}"):
    return "-" if value is None else text.format(value)


def peer_cell(problem, name, clock):
    time = median(peer_times(problem, name, clock))
    return "-" if time is None else f"{time:.1f} ({cell(ratio(problem, name, clock))})"


def problem_rows(run, problem):
    """One row for each clock."""
    names = peer_names(run)
    for clock in CLOCKS:
        read = median([r["clfd"].get(f"read_{clock}_us") for r in problem["rounds"]])
        own, any_type = (best(problem, names, clock, own_type) for own_type in (True, False))
        yield ([problem["problem"], clock, cell(read, "{:.1f}"), cell(median(clfd_times(problem, clock)), "{:.1f}"),
                cell(percent(problem, clock), "{:.0f}")] +
               [peer_cell(problem, name, clock) for name in names] +
               [f"{cell(own[0])} {own[1]}".strip(), f"{cell(any_type[0])} {any_type[1]}".strip()])


def mean_cell(values):
    """A geometric mean, and of how many where some are missing."""
    count = sum(value is not None for value in values)
    return cell(geometric_mean(values)) + (f" of {count}" if 0 < count < len(values) else "")


def mean_rows(run):
    names, problems = peer_names(run), run["problems"]
    for clock in CLOCKS:
        share = geometric_mean([percent(p, clock) for p in problems])
        yield (["geometric mean", clock, "", "", cell(share, "{:.0f}")] +
               [mean_cell([ratio(p, name, clock) for p in problems]) for name in names] +
               [mean_cell([best(p, names, clock, own_type)[0] for p in problems]) for own_type in (True, False)])


def table_lines(run):
    """The table in Markdown. The last column is left out where all peers store K and V in the problem's type."""
    names = peer_names(run)
    header = ["problem", "clock", "plain read", "clfd", "% of read"] + names + ["best", "best of any type"]
    rows = [row for problem in run["problems"] for row in problem_rows(run, problem)] + list(mean_rows(run))
    if all(has_own_type(problem, name) for problem in run["problems"] for name in names):
        header, rows = header[:-1], [row[:-1] for row in rows]
    return [f"| {' | '.join(row)} |" for row in [header, ["---"] * len(header)] + rows]


def heading_lines(run):
    clfd, peers = run["clfd"], run["peers"]
    spreads = [s for s in (spread(p, c) for p in run["problems"] for c in CLOCKS) if s is not None]
    lines = [f"{clfd.get('name', 'no device')}, driver {clfd.get('driver', 'unknown')}, {run['date']}",
             "peers: " + ", ".join(f"{key} {value}" for key, value in peers.items() if value not in ("", None)),
             f"command: {run['command']}",
             f"medians of {run['rounds']} alternating rounds; microseconds, in brackets the time over clfd's"]
    if spreads:
        lines.append(f"clfd's slowest round over its fastest: median {median(spreads):.2f}, worst {max(spreads):.2f}")
    return lines


def note_lines(run):
    """What peers cannot do and what they do differently, each sentence once with the problems it is about."""
    notes = {}
    for problem in run["problems"]:
        for r in problem["rounds"]:
            for name, result in [("clfd", r["clfd"])] + list(r["peers"].items()):
                said = result.get("reason") or result.get("note")
                if said:
                    notes.setdefault((name, said), {})[problem["problem"]] = True
    return [f"{name}: {said} [{'; '.join(texts) if len(texts) < len(run['problems']) else 'all'}]"
            for (name, said), texts in notes.items()]


def report(run):
    notes = note_lines(run)
    return "\n".join(heading_lines(run) + [""] + table_lines(run) + ([""] + notes if notes else [])) + "\n"


CSV_COLUMNS = ("problem", "system", "type", "way", "clock", "median_us", "min_us", "max_us", "gbs", "ratio_to_clfd",
               "percent_of_read", "relative_error", "reason")


def csv_row(problem, name, clock):
    results = [r["clfd"] if name == "clfd" else r["peers"].get(name, {}) for r in problem["rounds"]]
    times = [time for time in (time_of(result, clock) for result in results) if time is not None]
    row = {"problem": problem["problem"], "system": name, "clock": clock}
    row |= {key: results[-1].get(key, "") for key in ("type", "way", "relative_error", "reason")}
    if times:
        reads = [r["clfd"].get(f"read_{clock}_us") for r in problem["rounds"]]
        read, size = median(reads), median([r["clfd"].get("read_bytes") for r in problem["rounds"]])
        row |= {"median_us": median(times), "min_us": min(times), "max_us": max(times),
                "gbs": "" if size is None else 1e-3 * size / median(times),
                "ratio_to_clfd": 1 if name == "clfd" else ratio(problem, name, clock),
                "percent_of_read": "" if read is None else 100 * read / median(times)}
    return row


def write_csv(run, path):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, CSV_COLUMNS)
        writer.writeheader()
        for problem in run["problems"]:
            for name in ["clfd"] + peer_names(run):
                for clock in CLOCKS:
                    writer.writerow(csv_row(problem, name, clock))
