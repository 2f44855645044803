#!/usr/bin/env python3
"""Of the inputs that libFuzzer has merged, the few that reach the most: greedily first by edges, then by how often these are run.

usage: most_coverage.py CONTROL_FILE COUNT TARGET
CONTROL_FILE  of libFuzzer's -set_cover_merge=1 -merge_control_file=CONTROL_FILE, which names the features of every input
Prints the paths of at most COUNT inputs, and to standard error one line: inputs, edges and features, kept of all.
"""
import os
import sys


def read(path):
    """The inputs of a control file, with the features of each."""
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    count = int(lines[0])
    paths = lines[2:2 + count]
    features = {}
    for line in lines[2 + count:]:
        words = line.split()
        if words[0] == "FT":
            features[paths[int(words[1])]] = frozenset(map(int, words[2:]))
    return features


def greedy(features, count):
    """At most `count` inputs: each adds the most edges, then the most features, then is the smallest."""
    # libFuzzer counts eight features for each edge, one for each range of how often it is run.
    edges = {path: frozenset(feature // 8 for feature in its) for path, its in features.items()}
    rest = sorted(features, key=lambda path: (os.path.getsize(path), path))
    chosen, reached, seen = [], set(), set()
    while rest and len(chosen) < count:
        best = max(rest, key=lambda path: (len(edges[path] - reached), len(features[path] - seen)))
        if not features[best] - seen:
            break
        rest.remove(best)
        chosen.append(best)
        reached |= edges[best]
        seen |= features[best]
    all_edges, all_features = (len(frozenset().union(*sets.values())) for sets in (edges, features))
    return chosen, f"{len(chosen)} of {len(features)} inputs, {len(reached)} of {all_edges} edges, {len(seen)} of {all_features} features"


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    chosen, kept = greedy(read(sys.argv[1]), int(sys.argv[2]))
    if not chosen:
        sys.exit(f"most_coverage.py: {sys.argv[1]} has no input")
    print(*chosen, sep="\n")
    print(f"{sys.argv[3]:16} {kept}", file=sys.stderr)


if __name__ == "__main__":
    main()
