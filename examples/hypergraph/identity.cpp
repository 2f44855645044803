#include "hypergraph/instantiate.hpp"

namespace {

/// Identity maps, which have nothing to learn: the library's families for hypergraphs all learn their maps.
template <int D>
struct IdentityMaps : sheafnn::sheaf::DiagonalMaps<D> {
  static constexpr std::string_view name = "identity";
  static constexpr int coordinate_count = 0;

  template <class T>
  SHEAFNN_HD static void from_coordinates(const T*, Eigen::Matrix<T, D, 1>& map) {
    for (int k = 0; k < D; ++k) map(k) = T(1);
  }
  template <class T>
  SHEAFNN_HD static void from_coordinates_backward(const T*, const Eigen::Matrix<T, D, 1>&, T*) {}
};

/// Deterministic models alone: there is nothing to have a distribution.
template <int D>
constexpr hypergraph_program::Models models_of_identity() {
  using Model = sheafnn::SheafHyperGnn<IdentityMaps<D>>;
  return {[](const hypergraph_program::Job& job) {
            sheafnn::require(!job.bayesian, "model", Model::Options::kind.bayesian,
                             "identity maps have no distribution");
            return hypergraph_program::train_model<Model>(job);
          },
          [](const hypergraph_program::Trained& model, const sheafnn::HypergraphDataset& data,
             const sheafnn::PredictOptions& options) {
            return hypergraph_program::predict_with<Model>(model, data, options);
          },
          hypergraph_program::outputs_of<Model>};
}

}  // namespace

const hypergraph_program::Models hypergraph_program::identity[] = {models_of_identity<2>(),
                                                                   models_of_identity<3>(),
                                                                   models_of_identity<4>()};
