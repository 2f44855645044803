#!/usr/bin/env bash
# usage: check_lean_headers.sh [COMPILER]
# A program that only includes the library's headers compiles none of Eigen's dense decompositions, each of which takes
# seconds: a function that calls one is a template. CPPFLAGS says where Eigen is. Exit code 77: the compiler is not g++,
# which lists the classes of a translation unit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../include"
compiler=${1:-g++}
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
"$compiler" --version | grep -q "Free Software Foundation" || exit 77
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for header in sheafnn/*.hpp; do
  [[ $header =~ (cuda|distributed)\.hpp$ ]] || echo "#include \"$header\""
done > "$work/all.cpp"
classes() { "$compiler" -std=c++20 -fsyntax-only "-fdump-lang-class=$work/classes" -I. "${include_flags[@]}" "$1"; }
decomposition='^Class Eigen::(BDCSVD|JacobiSVD|SelfAdjointEigenSolver|EigenSolver|HouseholderQR|ColPivHouseholderQR|PartialPivLU|FullPivLU|LLT|LDLT)<'

# The check finds one where there is one.
echo '#include <Eigen/Dense>
inline Eigen::VectorXd f(const Eigen::MatrixXd& a) { return Eigen::LLT<Eigen::MatrixXd>(a).solve(a.col(0)); }' > "$work/one.cpp"
classes "$work/one.cpp"
grep -qE "$decomposition" "$work/classes" || { echo "the check does not see a decomposition" >&2; exit 1; }

classes "$work/all.cpp"
if grep -E "$decomposition" "$work/classes"; then
  echo "a program that includes all headers compiles these decompositions; make the functions that call them templates" >&2
  exit 1
fi
echo "no header compiles a decomposition for programs that do not call it"
