#!/usr/bin/env bash
# usage: check_errors.sh [COMPILER]
# Programs that must not compile, and what the compiler says of them: the concept that is not fulfilled, or the reason, in the first
# error or the note behind it, and at most 15 errors, warnings and notes in all. CPPFLAGS says where Eigen is.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
compiler=${1:-g++}
read -r -a include_flags <<< "${CPPFLAGS:--isystem /usr/include/eigen3}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
command=("$compiler" -std=c++20 "-I$root/include" "${include_flags[@]}")
# What all of them include is precompiled.
printf '#include <sheafnn/%s.hpp>\n' bsnn cooperative > "$work/common.hpp"
"${command[@]}" -x c++-header "$work/common.hpp" -o "$work/common.hpp.gch"

# usage: refuse NAME CONCEPT: the program on stdin must not compile; CONCEPT is the one it does not fulfil.
refuse() {
  local name=$1 concept=$2 messages first
  { cat "$work/common.hpp"; cat; } > "$work/program.cpp"
  if timeout 60 "${command[@]}" -fsyntax-only -include "$work/common.hpp" "$work/program.cpp" \
    > "$work/output" 2>&1; then
    echo "$name compiles"
    failed=1
    return
  fi
  messages=$(grep -E '(error|warning|note): |required (from|for)' "$work/output" || true)
  first=$(head -n 2 <<< "$messages"; grep -m 1 'error: ' <<< "$messages" || true)
  if ! grep -qw "$concept" <<< "$first"; then
    printf '%s: the first error does not name %s:\n%s\n' "$name" "$concept" "$(head -n 5 <<< "$messages")"
    failed=1
  elif [ "$(wc -l <<< "$messages")" -gt 15 ]; then
    printf '%s: %s messages:\n%s\n' "$name" "$(wc -l <<< "$messages")" "$messages"
    failed=1
  fi
}

refuse "SpecialOrthogonal<99>" StalkDimension <<< 'sheafnn::SpecialOrthogonal<99> family;'
refuse "Diagonal<0>" StalkDimension <<< 'sheafnn::Diagonal<0> family;'
refuse "Bsnn<GeneralLinear<9>>" StalkDimension <<< 'sheafnn::Bsnn<sheafnn::GeneralLinear<9>> model({});'
refuse "Csnn<9>" StalkDimension <<< 'sheafnn::Csnn<9> model({});'
refuse "a loop over tiles that takes a position" "takes a tile as" << 'END'
void twice(float* x, sheafnn::Index n) {
  sheafnn::detail::for_tiles<float>(0, n, [&]<class T>(sheafnn::Index c) { T::load(x + c).store(x + c); });
}
END
refuse "a posterior that is only a name" SheafSource << 'END'
struct MatrixLangevin {
  static constexpr std::string_view name = "matrix-langevin";
};
using Model = sheafnn::SheafModel<sheafnn::SpecialOrthogonal<3>, MatrixLangevin>;
int main() { Model model({.features = 34, .classes = 2}); }
END
refuse "a posterior without sample_backward" SheafSource << 'END'
struct Half : sheafnn::NormalPosterior<sheafnn::Diagonal<2>> {
  void sample_backward() const {}
};
sheafnn::SheafModel<sheafnn::Diagonal<2>, Half> model({.features = 34, .classes = 2});
END
refuse "a family without a chart" RestrictionMapFamily << 'END'
struct Symmetric : sheafnn::sheaf::DenseMaps<3> {
  static constexpr std::string_view name = "symmetric";
  static constexpr int coordinate_count = 6;
};
sheafnn::Nsd<Symmetric> model({.features = 34, .classes = 2});
END
refuse "convolutions on a given sheaf in a batch" BatchModel << 'END'
#include <sheafnn/batch/host_executor.hpp>
#include <sheafnn/batch/prediction.hpp>
#include <sheafnn/convolution.hpp>
using Model = sheafnn::SheafConvolutions<sheafnn::Diagonal<2>>;
void f(sheafnn::batch::HostExecutor& executor, const Model& model, const sheafnn::Dataset& data) {
  static_cast<void>(sheafnn::batch::predict(executor, model, data.graph, data.features));
}
END
refuse "a layer by hand in a batch" "sheafnn::layers::LaplacianLayer" << 'END'
#include <sheafnn/batch/host_executor.hpp>
#include <sheafnn/batch/prediction.hpp>
#include <sheafnn/layers.hpp>
template <class Family, class S>
class Own final : public sheafnn::layers::WeightedLayer<Family, S, sheafnn::layers::DiffusionWeights> {
  using sheafnn::layers::WeightedLayer<Family, S, sheafnn::layers::DiffusionWeights>::WeightedLayer;
};
using Maps = sheafnn::Diagonal<2>;
using Model = sheafnn::SheafModel<Maps, sheafnn::PointMass<Maps>, float, sheafnn::LayerKinds<Own>>;
void f(sheafnn::batch::HostExecutor& executor, const Model& model, const sheafnn::Dataset& data) {
  static_cast<void>(sheafnn::batch::predict(executor, model, data.graph, data.features));
}
END
refuse "an equation without a backward pass" "layer_equation.hpp" << 'END'
template <class T>
struct Half {
  template <class S>
  explicit Half(const S*) {}
  T forward(const sheafnn::layers::LayerValues<T>& at) const { return at.x; }
};
template <class Family, class S>
using Own = sheafnn::layers::LaplacianLayer<Half, Family, S>;
using Maps = sheafnn::Diagonal<2>;
sheafnn::SheafModel<Maps, sheafnn::PointMass<Maps>, float, sheafnn::LayerKinds<Own>> model({.features = 34, .classes = 2});
END
[ "$failed" -eq 0 ] && echo "10 programs are refused as they should be"
exit "$failed"
