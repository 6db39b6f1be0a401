"""plot.py - GB/s against kv_len for each system, drawn by gnuplot; a panel for each kind of heads.

GB/s are the bytes of K and V in the problem's own type over the time, also for peers that store them in another:
heights compare speeds. The roofline is clfd bench's plain read.
"""

import re
import shutil
import subprocess

import table

PANEL_WIDTH, PANEL_HEIGHT = 560, 400
# Okabe and Ito's colours, which also the colour-blind tell apart; the roofline is black.
COLOURS = ("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999999")
READ = "plain read"


def kind_of(text):
    """A problem without its batch and length: what the points of a panel have in common."""
    return " ".join(word for word in text.split() if not re.fullmatch(r"(b|kv)\d+|q1", word))


def kv_len(text):
    return int(re.search(r"\bkv(\d+)\b", text)[1])


def speed(problem, times):
    size = table.median([r["clfd"].get("read_bytes") for r in problem["rounds"]])
    time = table.median(times)
    return None if size is None or time is None else 1e-3 * size / time


def series(run, clock):
    """{kind: {system: [(kv_len, GB/s), ...]}}, points by length. Kinds of one length are left out where others have
    more, and those that nobody measured."""
    panels = {}
    for problem in run["problems"]:
        systems = panels.setdefault(kind_of(problem["problem"]), {})
        times = {READ: [r["clfd"].get(f"read_{clock}_us") for r in problem["rounds"]],
                 "clfd": table.clfd_times(problem, clock)}
        times |= {name: table.peer_times(problem, name, clock) for name in table.peer_names(run)}
        for name, values in times.items():
            gbs = speed(problem, values)
            if gbs is not None:
                systems.setdefault(name, []).append((kv_len(problem["problem"]), gbs))
    panels = {kind: {name: sorted(points) for name, points in systems.items()}
              for kind, systems in panels.items() if systems}
    curves = {kind: systems for kind, systems in panels.items() if len(systems.get("clfd", ())) > 1}
    return curves or panels


def style(name, colours):
    if name == READ:
        return 'with linespoints dashtype 2 linewidth 2 pointtype 0 linecolor rgb "#000000"'
    width = 3 if name == "clfd" else 1.5
    return f'with linespoints linewidth {width} pointtype 7 pointsize 0.5 linecolor rgb "{colours[name]}"'


def script(run, clock, path):
    """What gnuplot reads."""
    panels = series(run, clock)
    names = list(dict.fromkeys(name for systems in panels.values() for name in systems))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(name for name in names if name != READ)}
    columns = min(2, max(1, len(panels)))
    rows = max(1, -(-len(panels) // columns))
    clfd = run["clfd"]
    title = f"{clfd.get('name', '')}, driver {clfd.get('driver', '')}, {run['date']}, {clock} clock"
    lines = [f'set terminal svg noenhanced size {columns * PANEL_WIDTH},{rows * PANEL_HEIGHT + 40} font "sans,12" '
             'background rgb "white"', f'set output "{path}"', "set logscale x 2", "set yrange [0:*]", "set grid",
             'set xlabel "kv_len"', 'set ylabel "GB/s of K and V"', "set key bottom right",
             f'set multiplot layout {rows},{columns} title "{title}"']
    for panel, (kind, systems) in enumerate(panels.items()):
        lengths = [x for points in systems.values() for x, _ in points]
        least, most = min(lengths) / 1.5, max(lengths) * 1.5
        for name, points in systems.items():
            if name == READ and len(points) == 1:  # a line also where there is one length
                points = [(least, points[0][1]), (most, points[0][1])]
            block = f"$points_{panel}_{names.index(name)}"
            lines += [f"{block} << EOD"] + [f"{x:.8g} {y:.6g}" for x, y in points] + ["EOD"]
        curves = [f'$points_{panel}_{names.index(name)} using 1:2 {style(name, colours)} title "{name}"'
                  for name in systems]
        lines += [f"set xrange [{least:.6g}:{most:.6g}]"]
        lines += [f'set title "{kind}"', "plot " + ", \\\n     ".join(curves)]
    return "\n".join(lines + ["unset multiplot"]) + "\n"


def draw(run, clock, path):
    """Draws the SVG. Where there is no gnuplot, leaves the script beside it; returns the file that was written."""
    text = script(run, clock, path)
    if shutil.which("gnuplot"):
        subprocess.run(["gnuplot"], input=text, text=True, check=True)
        return path
    with open(path + ".gnuplot", "w", encoding="utf-8") as file:
        file.write(text)
    return path + ".gnuplot"
