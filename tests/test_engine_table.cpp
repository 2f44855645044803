// What the declarations of the networks say of the batch engine (docs/networks.md, "Where each runs") is what it compiles.
#include <doctest/doctest.h>

#include <string_view>

#include "sheafnn/batch.hpp"
#include "sheafnn/bsnn/network_options.hpp"
#include "sheafnn/bsnn/pooled_model.hpp"
#include "sheafnn/bundle.hpp"
#include "sheafnn/convolution.hpp"
#include "sheafnn/cooperative.hpp"
#include "sheafnn/every_layer.hpp"
#include "sheafnn/flow.hpp"
#include "sheafnn/hypergraph.hpp"

using namespace sheafnn;

namespace {

using Family = SpecialOrthogonal<2>;

/// The kind of a model, by its name.
template <class Model>
constexpr const NetworkKind& kind_of_model() {
  if constexpr (Model::Options::kind.has(Model::kind)) {
    return Model::Options::kind;
  } else {
    return kind_of(Model::kind);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("the engines' table: side by side", Model, AnyNsd<Family>, AnyBsnn<Family>, Csnn<2>, Bcsnn<2>,
                   SheafFlow<Family>, BayesianSheafFlow<Family>, ConnNsd<2>, BconnNsd<2>, SheafConvolutions<Family>,
                   BayesianSheafConvolutions<Family>, Bunn<2>, BayesianBunn<2>, AnySnn<Family>, AnyBgsnn<Family>,
                   SheafHyperGnn<Family>, BayesianSheafHyperGnn<Family>, PooledModel<Nsd<Family>>,
                   PooledModel<Bsnn<Family>>) {
  constexpr const NetworkKind& kind = kind_of_model<Model>();
  CHECK((Model::kind == kind.deterministic || Model::kind == kind.bayesian));
  CHECK(kind.batched == batch::BatchModel<Model, batch::HostExecutor>);
}

TEST_CASE("the engines' table: every kind has a row of its own") {
  for (const NetworkKind& kind : network_kinds) {
    CHECK(&kind_of(kind.deterministic) == &kind);
    CHECK(&kind_of(kind.bayesian) == &kind);
    CHECK(is_bayesian(kind.bayesian));
    CHECK_FALSE(is_bayesian(kind.deterministic));
    CHECK_FALSE(kind.program.empty());
    CHECK_FALSE(kind.python.empty());
  }
}
