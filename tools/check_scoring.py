#!/usr/bin/env python3
"""Compares `bmuf score` with jiwer, and with NIST's sclite and sc_stats.

    tools/check_scoring.py [--bmuf build/release/bmuf] REF.trn HYP.trn [HYP2.trn]

jiwer (PyPI) must count the same number of word and of character errors: it
breaks ties otherwise, so that kinds are printed but may differ. sclite and
sc_stats (Debian: sctk), where they are found, must count the same kinds of
errors with --align sclite, for each system and speaker, and of two systems the
same segments and z. Exit 1 if something differs.
"""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile


def read_trn(path):
    texts = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            words, _, name = line.rstrip().rpartition("(")
            texts[name.rstrip(")")] = " ".join(words.split())
    return texts


def score(bmuf, files, *options):
    command = [bmuf, "score", *files, "--json", *options]
    return json.loads(subprocess.run(command, check=True, text=True,
                                     stdout=subprocess.PIPE).stdout)


def errors(rate):
    return rate["substitutions"] + rate["deletions"] + rate["insertions"]


class Report:
    def __init__(self):
        self.wrong = 0

    def line(self, what, ours, theirs, equal):
        self.wrong += not equal
        print(f"{what:<34} {ours!s:>22} {theirs!s:>22}  "
              f"{'equal' if equal else 'DIFFERENT'}")


def with_jiwer(report, args, files):
    try:
        import jiwer
    except ImportError:
        print("jiwer is missing: pip install jiwer")
        return
    ref = read_trn(files[0])
    ours = score(args.bmuf, files, "--text", "none")
    for system, path in zip(ours["systems"], files[1:]):
        hyp = read_trn(path)
        lists = [ref[name] for name in ref], [hyp[name] for name in ref]
        for unit, run in (("words", jiwer.process_words),
                          ("characters", jiwer.process_characters)):
            found = run(*lists)
            theirs = found.substitutions + found.deletions + found.insertions
            report.line(f"{os.path.basename(path)} {unit}, jiwer",
                        errors(system[unit]), theirs,
                        errors(system[unit]) == theirs)


def kinds(rate):
    return tuple(int(rate[key]) for key in
                 ("total", "substitutions", "deletions", "insertions"))


def sclite_rows(tools, files, path, folder):
    """{speaker: (words, S, D, I)}, "Sum" for all."""
    common = [tools["sclite"], "-r", files[0], "trn", "-h", path, "trn", "-i",
              "spu_id", "-s"]
    text = subprocess.run([*common, "-o", "rsum", "stdout"], check=True,
                          text=True, stdout=subprocess.PIPE).stdout
    rows = {}
    for line in text.splitlines():
        row = re.match(r"\s*\|\s*(\S+)\s*\|\s*(\d+)\s+(\d+)\s*\|"
                       r"\s*(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", line)
        if row:
            n = [int(x) for x in row.groups()[1:]]
            rows[row.group(1)] = (n[1], n[3], n[4], n[5])
    subprocess.run([*common, "-o", "sgml", "-n", os.path.basename(path), "-O",
                    folder], check=True, stdout=subprocess.DEVNULL)
    return rows


def with_sclite(report, args, files):
    tools = {}
    for name in ("sclite", "sc_stats"):
        tools[name] = shutil.which(name, path=os.pathsep.join(
            [os.environ.get("PATH", ""), args.sctk, "/usr/lib/sctk/bin"]))
        if tools[name] is None:
            print(f"{name} is missing: apt install sctk")
            return
    ours = score(args.bmuf, files, "--text", "none", "--align", "sclite",
                 "--speakers")
    with tempfile.TemporaryDirectory() as folder:
        for system, path in zip(ours["systems"], files[1:]):
            rows = sclite_rows(tools, files, path, folder)
            name = os.path.basename(path)
            total = kinds(system["words"])
            report.line(f"{name}, sclite", total, rows.get("Sum"),
                        total == rows.get("Sum"))
            speakers = {s["speaker"].lower(): kinds(s)
                        for s in system["speakers"]}
            same = sum(speakers[s] == rows.get(s) for s in speakers)
            report.line(f"{name}, speakers as sclite", len(speakers), same,
                        len(speakers) == same)
        if len(files) > 2:
            with_sc_stats(report, tools, ours, files, folder)


def with_sc_stats(report, tools, ours, files, folder):
    sgml = b""
    for path in files[1:]:
        with open(os.path.join(folder, os.path.basename(path) + ".sgml"),
                  "rb") as file:
            sgml += file.read()
    out = os.path.join(folder, "out")
    subprocess.run([tools["sc_stats"], "-p", "-t", "mapsswe", "-v", "-n", out],
                   check=True, input=sgml, stdout=subprocess.DEVNULL)
    with open(out + ".stats.mapsswe", encoding="utf-8") as file:
        found = re.findall(r"segs: (\d+)\).*?Z Stat: (-?[\d.]+)", file.read())
    for k, system in enumerate(ours["systems"][1:]):
        pairs = system["than_first"]["matched_pairs"]
        mine = (pairs["segments"], round(pairs["z"], 3))
        theirs = (int(found[k][0]), float(found[k][1]))
        report.line(f"systems 1 and {k + 2}: segments, z", mine, theirs,
                    mine[0] == theirs[0] and abs(mine[1] - theirs[1]) < 0.0015)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bmuf", default="build/release/bmuf")
    parser.add_argument("--sctk", default="", help="folder with sclite")
    parser.add_argument("files", nargs="+", metavar="REF.trn HYP.trn")
    args = parser.parse_args()
    files = args.files
    if len(files) < 2:
        parser.error("give a reference and a hypothesis")
    report = Report()
    print(f"{'':<34} {'bmuf':>22} {'peer':>22}")
    with_jiwer(report, args, files)
    with_sclite(report, args, files)
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
