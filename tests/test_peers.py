"""tools/peers without PyTorch: problems, table, plot, and compare with programs that stand in for both sides."""

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

PEERS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools", "peers")
sys.path.insert(0, PEERS)
sys.dont_write_bytecode = True

import plot  # noqa: E402
import problem  # noqa: E402
import table  # noqa: E402

SHORT, LONG = "b1 hq8 hkv8 d128 kv1024 f16", "b1 hq8 hkv8 d128 kv4096 f16"


def clfd_result(single, steady):
    """The plain read takes 90 and 80 us, of 8 MB."""
    return {"read_bytes": 8e6, "read_single_us": 90.0, "read_steady_us": 80.0, "single_us": single, "steady_us": steady,
            "single_percent": 9000.0 / single, "steady_percent": 8000.0 / steady}


def peer_result(single, steady, type_name="f16"):
    return {"type": type_name, "way": "fast", "single_us": single, "steady_us": steady, "note": ""}


def make_run():
    """Three rounds of a problem, the second of them disturbed, and one round of another that one peer refuses."""
    rounds = [{"clfd": clfd_result(c, c), "peers": {"flash": peer_result(f, f), "wide": peer_result(w, w, "f32")}}
              for c, f, w in ((100.0, 150.0, 80.0), (400.0, 640.0, 360.0), (110.0, 143.0, 110.0))]
    refused = {"clfd": clfd_result(200.0, 160.0),
               "peers": {"flash": {"type": "f16", "reason": "no such thing"}, "wide": peer_result(400.0, 160.0, "f32")}}
    return {"date": "2001-02-03", "command": "compare", "rounds": 3, "clfd": {"name": "D", "driver": "1.0"},
            "peers": {"torch": "2"}, "problems": [{"problem": SHORT, "rounds": rounds},
                                                  {"problem": LONG, "rounds": [refused]}]}


class ProblemTest(unittest.TestCase):
    def test_words(self):
        text = "b16 q4 hq32 hkv8 d64 kv8192 bf16 page=16 window=128 softcap=2.5 causal sinks splits=3 bhsd"
        parsed = problem.parse("  " + text.replace(" d64", "   d64"))
        self.assertEqual(parsed.text, text)
        self.assertEqual((parsed.batch, parsed.q_len, parsed.num_q_heads, parsed.num_kv_heads, parsed.ratio),
                         (16, 4, 32, 8, 4))
        self.assertEqual((parsed.head_dim, parsed.kv_len, parsed.type, parsed.page_size), (64, 8192, "bf16", 16))
        self.assertEqual((parsed.window, parsed.softcap, parsed.causal, parsed.sinks, parsed.others),
                         (128, 2.5, True, True, ()))

    def test_defaults(self):
        parsed = problem.parse("hq7 d8 kv3")
        self.assertEqual((parsed.batch, parsed.q_len, parsed.num_kv_heads, parsed.type), (1, 1, 7, "f32"))

    def test_words_that_no_peer_knows(self):
        self.assertEqual(problem.parse("hq8 d128 kv64 kvtype=q8_0 dv64").others, ("kvtype=q8_0", "dv64"))

    def test_sizes_that_do_not_fit(self):
        for text in ("hq8 d128", "hq8 hkv3 d128 kv64", "b0 hq8 d128 kv64", ""):
            with self.assertRaises(ValueError, msg=text):
                problem.parse(text)

    def test_keys_that_are_read(self):
        self.assertEqual(problem.parse("hq8 d128 kv1000 f16").read_bytes(), 2 * 8 * 128 * 2 * 1000)
        self.assertEqual(problem.parse("hq8 d128 kv1000 f16").read_bytes("f32"), 2 * 8 * 128 * 4 * 1000)
        self.assertEqual(problem.parse("hq8 d128 kv1000 window=10").num_keys, 10)
        self.assertEqual(problem.parse("q3 hq8 d128 kv1000 window=10").first_key, 988)
        self.assertEqual(problem.parse("hq8 d128 kv1000 window=2000").num_keys, 1000)

    def test_sets(self):
        sets = problem.read_sets()
        self.assertEqual(len(sets["standard"]), 19)
        for text in sum(sets.values(), []):
            self.assertEqual(problem.parse(text).others, (), text)
        self.assertEqual(problem.choose(["cpu", "options"]), sets["cpu"] + sets["options"])
        with self.assertRaises(ValueError):
            problem.choose(["nothing"])


class TableTest(unittest.TestCase):
    def setUp(self):
        self.run_of_both = make_run()
        self.short, self.long = self.run_of_both["problems"]

    def test_ratio_is_of_neighbours(self):
        """1.5, 1.6 and 1.3: the disturbed round counts like the others."""
        self.assertAlmostEqual(table.ratio(self.short, "flash", "single"), 1.5)
        self.assertIsNone(table.ratio(self.long, "flash", "single"))
        self.assertIsNone(table.ratio(self.long, "nobody", "single"))

    def test_percent_and_spread(self):
        self.assertAlmostEqual(table.percent(self.short, "single"), 9000 / 110)
        self.assertAlmostEqual(table.percent(self.short, "steady"), 8000 / 110)
        self.assertAlmostEqual(table.spread(self.short, "steady"), 4.0)

    def test_best(self):
        self.assertEqual(table.best(self.short, ["flash", "wide"], "single", True), (1.5, "flash"))
        self.assertEqual(table.best(self.short, ["flash", "wide"], "single", False), (0.9, "wide"))
        self.assertEqual(table.best(self.long, ["flash", "wide"], "single", True), (None, ""))

    def test_geometric_mean(self):
        self.assertAlmostEqual(table.geometric_mean([2.0, None, 8.0]), 4.0)
        self.assertIsNone(table.geometric_mean([None]))

    def test_table(self):
        lines = table.table_lines(self.run_of_both)
        self.assertEqual(lines[0], "| problem | clock | plain read | clfd | % of read | flash | wide | best "
                                   "| best of any type |")
        self.assertEqual(lines[2], f"| {SHORT} | single | 90.0 | 110.0 | 82 | 150.0 (1.50) | 110.0 (0.90) | 1.50 flash "
                                   "| 0.90 wide |")
        self.assertEqual(lines[4], f"| {LONG} | single | 90.0 | 200.0 | 45 | - | 400.0 (2.00) | - | 2.00 wide |")
        self.assertEqual(lines[6], "| geometric mean | single |  |  | 61 | 1.50 of 1 | 1.34 | 1.50 of 1 | 1.34 |")
        self.assertEqual(len(lines), 8)

    def test_one_type(self):
        for round_of_both in self.short["rounds"] + self.long["rounds"]:
            del round_of_both["peers"]["wide"]
        self.assertTrue(table.table_lines(self.run_of_both)[0].endswith("| flash | best |"))

    def test_report(self):
        text = table.report(self.run_of_both)
        self.assertIn("D, driver 1.0, 2001-02-03\n", text)
        self.assertIn("command: compare\n", text)
        self.assertIn(f"flash: no such thing [{LONG}]\n", text)


class PlotTest(unittest.TestCase):
    def test_series(self):
        panels = plot.series(make_run(), "steady")
        self.assertEqual(list(panels), ["hq8 hkv8 d128 f16"])
        systems = panels["hq8 hkv8 d128 f16"]
        self.assertEqual([x for x, _ in systems["clfd"]], [1024, 4096])
        self.assertAlmostEqual(systems["plain read"][0][1], 100.0)
        self.assertAlmostEqual(systems["clfd"][1][1], 50.0)
        self.assertEqual([x for x, _ in systems["flash"]], [1024])

    def test_lone_lengths(self):
        run = make_run()
        run["problems"].append({"problem": "b2 hq64 hkv8 d128 kv4096 f16", "rounds": run["problems"][1]["rounds"]})
        self.assertEqual(len(plot.series(run, "single")), 1)
        run["problems"] = run["problems"][1:]
        self.assertEqual(len(plot.series(run, "single")), 2)

    def test_problems_that_clfd_could_not_run_are_no_panel(self):
        run = make_run()
        run["problems"] = run["problems"][1:]
        run["problems"].append({"problem": "b2 hq64 hkv8 d128 kv4096 f16",
                                "rounds": [{"clfd": {"reason": "no room"}, "peers": {}}]})
        self.assertEqual(list(plot.series(run, "single")), ["hq8 hkv8 d128 f16"])
        self.assertNotIn("hq64", plot.script(run, "single", "plot.svg"))

    def test_roofline_of_one_length(self):
        run = make_run()
        run["problems"] = run["problems"][1:]
        self.assertIn("EOD\n2730.6667 100\n6144 100\nEOD", plot.script(run, "steady", "plot.svg"))

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_gnuplot_draws_it(self):
        with tempfile.TemporaryDirectory() as folder:
            path = plot.draw(make_run(), "steady", os.path.join(folder, "plot.svg"))
            with open(path, encoding="utf-8") as file:
                drawn = file.read()
        self.assertIn("</svg>", drawn)
        for text in ("plain read", "clfd", "flash", "hq8 hkv8 d128 f16", "2001-02-03"):
            self.assertIn(f">{text}<" if text != "2001-02-03" else text, drawn)


# They note their turns in the file `turns`.
CLFD = """#!/bin/sh
echo clfd >> "$0.turns"
case "$*" in *kv4096*) echo "no room" >&2; exit 1;; esac
echo '{"device": {"name": "D", "driver": "1.0"}, "results": [%s]}'
""" % json.dumps(clfd_result(100.0, 100.0))
PEER = """#!/bin/sh
echo '{"torch": "2", "device": "D"}'
while read -r line; do
    echo peers >> "${0%%python}clfd.turns"
    echo "a library's own line"
    echo '{"problem": "", "peer": "flash", %s'
    echo '{"end": ""}'
done
""" % json.dumps(peer_result(150.0, 120.0))[1:]


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        for name, text in (("clfd", CLFD), ("python", PEER)):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(self.path(name), 0o755)

    def tearDown(self):
        self.folder.cleanup()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def compare(self, *arguments):
        command = [sys.executable, "-B", os.path.join(PEERS, "compare"), "--out", self.path("out")]
        return subprocess.run(command + list(arguments), capture_output=True, text=True, check=False)

    def measure(self, *arguments):
        return self.compare("--clfd", self.path("clfd"), "--python", self.path("python"), *arguments)

    def test_turns_and_files(self):
        ended = self.measure("--rounds", "2", SHORT, LONG)
        self.assertEqual((ended.returncode, ended.stderr.count("round 2 of 2")), (0, 2), ended.stderr)
        with open(self.path("clfd.turns"), encoding="utf-8") as file:
            self.assertEqual(file.read().split(), ["clfd", "peers"] * 4)
        self.assertIn(f"| {SHORT} | steady | 80.0 | 100.0 | 80 | 120.0 (1.20) | 1.20 flash |", ended.stdout)
        self.assertIn(f"clfd: no room [{LONG}]", ended.stdout)
        with open(self.path("out.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 2 * 2 * 2)
        self.assertEqual((rows[2]["system"], rows[2]["clock"], rows[2]["ratio_to_clfd"]), ("flash", "single", "1.5"))

    def test_from_a_file(self):
        self.measure("--rounds", "1", SHORT)
        with open(self.path("out.txt"), encoding="utf-8") as file:
            text = file.read()
        ended = self.compare("--from", self.path("out.json"))
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertTrue(ended.stdout.startswith(text))

    def test_faults(self):
        self.assertEqual(self.measure("hq8 kv1024").returncode, 2)
        self.assertEqual(self.measure(LONG).returncode, 1)
        self.assertEqual(self.measure("--rounds", "0").returncode, 2)
        self.assertEqual(self.measure("--set", "nothing").returncode, 2)
        self.assertEqual(self.compare("--from", self.path("nothing.json")).returncode, 1)
        os.remove(self.path("clfd"))
        self.assertEqual(self.measure(SHORT).returncode, 1)


if __name__ == "__main__":
    unittest.main()
