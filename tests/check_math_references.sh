#!/usr/bin/env bash
# usage: check_math_references.sh [ROOT [--list]]
# Every section of docs/math/ that a comment or a document names in quotes, behind "math:", "math," or "math.md", must
# be a heading there, behind a number that no other has. Several quoted names may follow each other, separated by commas,
# and a name may continue on the next line of a comment. Numbers of equations behind a name, "Score" (2.15), behind "math:" or behind a
# link to a section must be numbers of equations there. Every displayed equation has one number, of its chapter, that no other has, and the
# pages refer to no other number. Prints what is missing; with --list, all references.
set -euo pipefail
root=${1:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
list=${2:-}
cd "$root"
pages=(docs/math/*.md)
[ -f "${pages[0]}" ] || { echo "no docs/math/ in $root"; exit 1; }

folders=()
for folder in include examples tests benchmarks docs README.md; do
  if [ -e "$folder" ]; then folders+=("$folder"); fi
done
files=()
while IFS= read -r file; do files+=("$file"); done < <(grep -rIlw math "${folders[@]}" \
  --include='*.hpp' --include='*.cpp' --include='*.cu' --include='*.h' --include='*.md' | sort)

awk -v list="$list" '
  role == "page" {  # the headings and the equations
    if (FNR == 1) chapter = -1
    if (/^```/) {
      if (in_block && is_formula && tags != 1) {
        print FILENAME ":" FNR ": a displayed equation with " tags + 0 " numbers"
        bad = 1
      }
      in_block = !in_block
      is_formula = /^```math *$/
      tags = 0
      next
    }
    if (in_block) {
      rest = is_formula ? $0 : ""
      while (match(rest, /\\tag\{[^}]*\}/)) {
        number = substr(rest, RSTART + 5, RLENGTH - 6)
        rest = substr(rest, RSTART + RLENGTH)
        ++tags
        if (number !~ /^[0-9]+\.[1-9][0-9]*$/ || number + 0 < chapter || number + 0 >= chapter + 1) {
          print FILENAME ":" FNR ": (" number ") is no number for an equation of chapter " chapter
          bad = 1
        }
        if (number in equation) {
          print FILENAME ":" FNR ": a second equation (" number ")"
          bad = 1
        }
        equation[number] = FNR
        ++equations
      }
      next
    }
    rest = $0
    gsub(/\$[^$]*\$|`[^`]*`/, "", rest)
    while (match(rest, /\([0-9]+\.[0-9]+\)/)) {
      quoted[++quotations] = FILENAME ":" FNR " " substr(rest, RSTART + 1, RLENGTH - 2)
      rest = substr(rest, RSTART + RLENGTH)
    }
    if (match($0, /^##?#?#? +/)) {
      name = substr($0, RLENGTH + 1)
      if (match(name, /^([0-9]+\.)+[0-9]* +/)) {
        number = substr(name, 1, RLENGTH - 1)
        name = substr(name, RLENGTH + 1)
        if (number in numbered) {
          print FILENAME ":" FNR ": a second section " number
          bad = 1
        }
        numbered[number] = FNR
        chapter = int(number)
      } else if ($1 != "#") {
        print FILENAME ":" FNR ": a section without a number"
        bad = 1
      }
      sub(/[ #]+$/, "", name)
      if (name in heading) {
        print FILENAME ":" FNR ": a second heading \"" name "\""
        bad = 1
      }
      heading[name] = FNR
    }
    next
  }
  FNR == 1 { finish() }
  {  # one line of text for the file, without the marks of comments
    file = FILENAME
    sub(/^[ \t]*(\/\/+|\*|#+)?[ \t]*/, "")
    sub(/[ \t\r]+$/, "")
    start[FNR] = length(text) + 1
    lines = FNR
    text = text $0 " "
  }
  function line_of(position,    low, high, middle) {
    low = 1
    high = lines
    while (low < high) {
      middle = int((low + high + 1) / 2)
      if (start[middle] <= position) low = middle; else high = middle - 1
    }
    return low
  }
  function check(name, position) {
    ++count
    if (list != "") print file ":" line_of(position) ": \"" name "\"" (name in heading ? "" : " (missing)")
    if (name in heading) return
    if (list == "") print file ":" line_of(position) ": docs/math/ has no heading \"" name "\""
    ++missing
  }
  function check_number(number, position) {
    ++numbers
    if (list != "") print file ":" line_of(position) ": (" number ")" (number in equation ? "" : " (missing)")
    if (number in equation) return
    if (list == "") print file ":" line_of(position) ": docs/math/ has no equation (" number ")"
    ++missing_numbers
  }
  function finish(    rest, at, length_of_name) {
    rest = text
    at = 0  # rest is what follows the character at of text
    while (match(rest, /(^|[^A-Za-z0-9_:])(math(:|,|\.md\)?[:,]?)|math\/[a-z_]+\.md#[a-z0-9-]+\),?) +("|\([0-9]+\.[0-9]+\))/)) {
      if (substr(rest, RSTART + RLENGTH - 1, 1) != "\"") {  # a number without a name: read it as below
        at += RSTART - 1
        rest = substr(rest, RSTART)
        match(rest, /\([0-9]+\.[0-9]+\)/)
        at += RSTART - 1
        rest = substr(rest, RSTART)
        match(rest, /^\([0-9]+\.[0-9]+\)/)
      }
      do {
        if (substr(rest, RSTART + RLENGTH - 1, 1) == ")") {
          match(rest, /[0-9]+\.[0-9]+\)/)
          check_number(substr(rest, RSTART, RLENGTH - 1), at + RSTART)
          at += RSTART + RLENGTH - 1
          rest = substr(rest, RSTART + RLENGTH)
        } else {
          at += RSTART + RLENGTH - 1
          rest = substr(rest, RSTART + RLENGTH)
          length_of_name = index(rest, "\"") - 1
          if (length_of_name < 0) length_of_name = length(rest)
          check(substr(rest, 1, length_of_name), at)
          at += length_of_name + 1
          rest = substr(rest, length_of_name + 2)
        }
      } while (match(rest, /^ *(,|and|, and) *"/) || match(rest, /^ *(,|and|, and)? *\([0-9]+\.[0-9]+\)/))
    }
    text = ""
  }
  END {
    finish()
    if (count == 0) {
      print "no reference to a section of docs/math/ found"
      exit 1
    }
    for (i = 1; i <= quotations; ++i) {
      split(quoted[i], part, " ")
      if (!(part[2] in equation)) {
        print part[1] ": there is no equation (" part[2] ")"
        bad = 1
      }
    }
    print count " references to sections of docs/math/, " missing + 0 " of them missing; " numbers + 0 " to its " equations + 0 \
      " equations, " missing_numbers + 0 " of them missing"
    exit bad || missing > 0 || missing_numbers > 0
  }' role=page "${pages[@]}" role=reference "${files[@]}"
