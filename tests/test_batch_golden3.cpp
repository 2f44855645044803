/// \file
/// The batch engine on the host against the golden values of golden3/ (golden3_case.hpp).
#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <vector>

#include "golden3_case.hpp"
#include "golden_batch.hpp"
#include "sheafnn/batch/bundle_network.hpp"
#include "sheafnn/batch/host_executor.hpp"
#include "sheafnn/batch/hypergraph_layer.hpp"
#include "sheafnn/bsnn/hypergraph_model.hpp"
#include "sheafnn/every_layer.hpp"

namespace test_batch_golden3 {
namespace {

using namespace sheafnn;

/// A host whose layers of attention take explicit noise, laid out as layers::Noise says, in place of their streams' numbers.
class GivenNoiseExecutor : public batch::HostExecutor {
 public:
  /// \param layers  noise layer by layer, of one instance
  explicit GivenNoiseExecutor(const std::vector<std::vector<double>>& layers) : layers_(layers) {}

  template <class... Parts>
  void launch_together(const Parts&... parts) {
    HostExecutor::launch_together(given(parts)...);
  }
  /// Scores that took explicit noise.
  [[nodiscard]] Index taken() const noexcept { return taken_; }

 private:
  using Drawn = batch::detail::ScoreNoise<double>;
  struct Given {
    Drawn drawn;
    const double* values;

    void operator()(Index item, Index instance) const {
      const Index score = item / drawn.blocks, pairs = drawn.scores.graph.pairs(), heads = drawn.scores.heads;
      const Index address = score < pairs ? Index{drawn.scores.graph.pair_arc[score]} : score;
      double* const to = drawn.noise + instance * drawn.scores.numbers() + score * heads;
      for (Index k = 0; k < heads; ++k) to[k] = values[address * heads + k];
    }
  };

  template <class Part>
  const Part& given(const Part& part) {
    return part;
  }
  batch::Items<Given> given(const batch::Items<Drawn>& part) {
    taken_ += part.items;
    return {part.items, part.groups, Given{part.kernel, layers_.at(part.kernel.layer).data()}};
  }

  const std::vector<std::vector<double>>& layers_;
  Index taken_ = 0;
};

template <class Model>
void check_bundle(const std::string& name) {
  batch::HostExecutor executor;
  const golden::Case given = golden3::read(name);
  golden::check_batch<Model>(executor, given, golden::double_bounds, golden3::bundle_model<Model>(given),
                             given.graph);
}
template <class Model>
void check_hypergraph(const std::string& name) {
  batch::HostExecutor executor;
  const golden::Case given = golden3::read(name);
  golden::check_batch<Model>(executor, given, golden::double_bounds, golden3::hypergraph_model<Model>(given),
                             golden3::hypergraph_of(given));
}
template <class Model>
void check_connection(const std::string& name) {
  batch::HostExecutor executor;
  const golden::Case given = golden3::connection(name);
  golden::check_batch<Model>(executor, given, golden::double_bounds,
                             typename Model::Posterior(golden3::connection_of<typename Model::Family>(given)));
}

}  // namespace

TEST_CASE("golden values: other layers in the batch engine on the host") {
  batch::HostExecutor executor;
  const auto check = [&]<class Model>(std::type_identity<Model>, const golden::Case& given) {
    golden::check_batch<Model>(executor, given, golden::double_bounds);
  };
  check(std::type_identity<SheafWave<GeneralLinear<2>, double>>(), golden3::layer_form("wave_nsd_gen2"));
  check(std::type_identity<CopresheafNetwork<GeneralLinear<2>, double>>(), golden3::layer_form("copresheaf_gen2"));
  check(std::type_identity<SheafAttention<SpecialOrthogonal<3>, double>>(), golden3::layer_form("san_so3"));
  check(std::type_identity<SheafAttention<Diagonal<2>, double>>(), golden3::layer_form("res_san_diag2_heads"));
  check(std::type_identity<DirectedSheafNetwork<SpecialOrthogonal<2>, double>>(), golden3::directed("dsnn_so2"));
  check(std::type_identity<BayesianDirectedSheafNetwork<Diagonal<2>, double>>(), golden3::directed("bdsnn_diag2"));
}

TEST_CASE("golden values: random attention in the batch engine on the host") {
  using Model = BayesianSheafAttention<SpecialOrthogonal<2>, double>;
  const golden::Case given = golden3::layer_form("bsan_so2_random_attention");
  const golden::Noise<double> noise = golden::noise_of(given, golden::model_of<Model>(given));
  GivenNoiseExecutor executor(noise.layers);
  golden::check_batch<Model>(executor, given, golden::double_bounds);
  CHECK(executor.taken() > 0);
}

TEST_CASE("golden values: connections in the batch engine on the host") {
  check_connection<Snn<Orthogonal<2>, double>>("conn_nsd_o2");
  check_connection<Bgsnn<SpecialOrthogonal<3>, double>>("bconn_so3_lp");
  check_connection<Bgsnn<Orthogonal<3>, double>>("bconn_so3_lp");
}

TEST_CASE("golden values: bundle networks in the batch engine on the host") {
  check_bundle<Bunn<2, double>>("bunn_planar");
  check_bundle<Bunn<3, double>>("bunn_d3_feedforward");
}

TEST_CASE("golden values: hypergraph networks in the batch engine on the host") {
  check_hypergraph<SheafHyperGnn<Diagonal<2>, double>>("hyper_diag2");
  check_hypergraph<SheafHyperGnn<Diagonal<3>, double>>("hyper_diag3_published");
  check_hypergraph<SheafHyperGnn<SpecialOrthogonal<3>, double>>("hyper_so3_nonlinear");
  check_hypergraph<BayesianSheafHyperGnn<GeneralLinear<2>, double>>("bhyper_gen2");
}

}  // namespace test_batch_golden3
