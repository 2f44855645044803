# What checks of programs share; to be sourced.

# usage: enter_work_folder FOLDER_OF_PROGRAMS: sets bin to the folder, and goes to a new folder, work, that is removed at the end
enter_work_folder() {
  bin=$(cd "$1" && pwd)
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  cd "$work"
}
# usage: fail WHAT
fail() {
  echo "$(basename "$0" .sh): $1" >&2
  exit 1
}
# usage: refuse PATTERN COMMAND...: exit code 2, one line on stderr that matches, nothing written.
refuse() {
  local pattern=$1 status=0
  shift
  rm -f out*
  "$@" > /dev/null 2> error.txt || status=$?
  [ $status -eq 2 ] || fail "exit code $status instead of 2: $*"
  [ "$(wc -l < error.txt)" -eq 1 ] || fail "not one line: $(cat error.txt)"
  grep -qE -e "$pattern" error.txt || fail "'$(cat error.txt)' does not match '$pattern'"
  ! compgen -G 'out*' > /dev/null || fail "something was written: $*"
}
# usage: find_numpy: sets python to an interpreter with NumPy
find_numpy() {
  for python in python3 /usr/bin/python3; do
    if $python -c 'import numpy' 2> /dev/null; then return; fi
  done
  fail "no numpy (Debian: python3-numpy)"
}
# usage: facts REPORT: what a report says, without time, place and command line.
facts() { grep -vE '"(all|train|evaluate|threads|command|started|seconds|commit|machine)"' "$1"; }
# usage: check_sheaf TABLE REPORT: the figures of the sheaves are in the table of train as in its report: a column, one summary
# in lines of at most 100 characters, and one warning that fits the network where some trainings do not use their sheaf.
check_sheaf() {
  python3 - "$1" "$2" << 'END' || fail "figures of the sheaf: $(cat "$1")"
import json, re, statistics, sys
table, report = open(sys.argv[1]).read(), json.load(open(sys.argv[2]))
lines = table.splitlines()
first = next(i for i, line in enumerate(lines) if line.startswith("split "))
assert lines[first].split()[-2:] == ["permuted", "s/epoch"]
rows = [line.split() for line in lines[first + 1:] if re.match(r" *\d+  ", line)]
uses = [one["sheaf"] for one in report["splits"]]
assert [row[-2] for row in rows] == [f"{use['permuted']['rise']:+.3f}" for use in uses]
whose = f", medians of {len(uses)} trainings" if len(uses) > 1 else ""
begin = next(i for i, line in enumerate(lines) if line.startswith(f"sheaf{whose}: "))
assert sum(line.startswith("sheaf") for line in lines) == 1 and all(len(line) <= 100 for line in lines[begin:])
said = " ".join(" ".join(lines[begin:]).split())
median = lambda *keys: statistics.median([use[keys[0]] if len(keys) == 1 else use[keys[0]][keys[1]] for use in uses])
for text, *keys in (("validation loss %.3f", "loss"), ("maps permuted %+.3f", "permuted", "rise"),
                    ("drawn from the prior %+.3f", "prior", "rise"), ("identity %+.3f", "identity", "rise")):
    assert text % median(*keys) in said, text % median(*keys)
model, summary = report["model"], report["sheaf"]
bayesian, nodes = model in ("bsnn", "bcsnn", "bflow", "bbunn"), model in ("csnn", "bcsnn", "bunn", "bbunn")
assert ("KL per pair" in said) == bayesian and all((use["kl_per_pair"] is not None) == bayesian for use in uses)
unused = [use["warning"] for use in uses if use["warning"] is not None]
assert summary["unused"] == len(unused) and (summary["warning"] is None) == (not unused)
assert said.count("the sheaf is not used") == (1 if unused else 0)
for text in [*unused, *([summary["warning"]] if unused else [])]:
    assert ("KL weight" in text) == bayesian and ("identity maps" in text) == (not nodes)
    assert f"permuted between {'nodes' if nodes else 'edges'}" in text
if unused:
    assert said[said.index("the sheaf is not used"):].startswith(summary["warning"])
    assert len(uses) == 1 or f"in {len(unused)} of {len(uses)} trainings" in summary["warning"]
END
}
# usage: saved_figures MODEL: the figures in a checkpoint, as JSON.
saved_figures() {
  python3 - "$1" << 'END'
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
print(header["__metadata__"].get("sheaf_use", "none"))
END
}
# usage: check_own_parts PROGRAM: one of the examples that read or replace a part of the library. What they learn is
# well above chance: each class of their graph has half of the members.
check_own_parts() {
  local name=$(basename "$1") report
  report=$("$@") || fail "$name"
  case $name in
    own_loss) awk '/^R\^2 / {n++; if ($NF < 0.3) bad = 1} END {exit bad || n != 1}' <<< "$report" ;;
    *) awk '/test accuracy/ {n++; last = $NF + 0; if ($1 != "step" && last < 60) bad = 1}
            END {exit bad || n == 0 || last < 60}' <<< "$report" ;;
  esac || fail "$name: $report"
  [ "$name" != learned_sheaf ] || [ "$(grep -cE '^(before training|after training|a sample) ' <<< "$report")" -eq 3 ] \
    || fail "learned_sheaf lacks a sheaf: $report"
}
