#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/page.py RESULTS.json > docs/performance-gpu.md: the page of the GPU benchmark, from what it wrote."""
import datetime
import json
import os
import sys


def figure(f):
    if not isinstance(f, dict) or "median" not in f:
        return "-"
    m = f["median"]
    digits = 0 if m >= 100 else 1 if m >= 10 else 3
    return f"{m:.{digits}f} {f.get('unit', '')}"


def ratio(row):
    if "ratio" not in row:
        return "-"
    r = row["ratio"]
    return f"{r['median']:.2f} ({r['low']:.2f} to {r['high']:.2f})"


def goal(row):
    if "goal" not in row:
        return "report"
    sign = "<=" if row["goal"]["better"] == "less" else ">="
    reached = row.get("reached")
    return f"{sign} {row['goal']['ratio']:g}" + ("" if reached is None else ": reached" if reached else ": **missed**")


# What a row is to be read with, whatever was measured.
ALWAYS = {
    "cxi_wait": "the device is a stand-in, a CPU thread of the benchmark that knows armed events and nothing else; the software "
    "Cassini's time is in the row of the 8 B put",
}

results = json.load(open(sys.argv[1]))
predictions = results.get("predictions", {})
measured = datetime.date.fromtimestamp(os.path.getmtime(sys.argv[1]))
print(f"""# Figures on a GPU

Written by `bench/gpu/page.py` from what `bench/gpu/run` measured on {measured}: {results['gpu']}. Each row alternates ours with what
stands beside it, launch by launch; the ratio is the median of the pairs, with its quartiles. *Bare* is a loop with the same
stores and the same releases and no bookkeeping. Predictions were written before the first run, and anew before the last one,
from the figures before, for rows whose implementation had changed (`why` in `bench/gpu/predictions.json` says which). The NIC
is software: a CPU thread executes the rings, so rows in which it works say nothing about a NIC of hardware.

| what | beside | ours | ratio | goal | predicted |
|---|---|---|---|---|---|""")
notes = []
for row in results["rows"]:
    what = row["what"].strip()
    if "failed" in row:
        print(f"| {what} | - | failed: {row['failed']} | - | {goal(row)} | - |")
        continue
    beside = f"{row.get('other_name', '')} {figure(row.get('other'))}".strip()
    said = predictions.get(row["id"], {})
    predicted = f"{said['ratio']:g}" if "ratio" in said else said.get("ours", "-")
    print(f"| {what} | {beside} | {figure(row.get('ours'))} | {ratio(row)} | {goal(row)} | {predicted} |")
    for note in (ALWAYS.get(row["id"]), row.get("note")):
        if note is not None and note not in [n for _, n in notes]:
            notes.append((what, note))
print()
for what, note in notes:
    print(f"- *{what}*: {note}")
print("""
To repeat: `RDMAXCEL=FOLDER bench/gpu/run` (the folder has RDMaxcel's `rdmaxcel.cu`; without it the figure seen earlier stands
in its place and is marked).""")
