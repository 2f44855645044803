/// \file
/// An exchange with one of the rules of graph/graph_part.hpp broken, to show that the tests see it.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "sheafnn/distributed/row_exchange.hpp"

namespace test {

enum class Fault {
  stale_halo,
  lost_sums,
  own_noise,
  whole_cut_edges,
  own_masks,
  no_sum,
  stale_scales,
  lost_scales,
  own_degrees,
  own_sizes,
  undirected_degrees,
  own_statistics,
  own_projections,
  smallest_norm
};
inline constexpr std::pair<Fault, const char*> faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::lost_sums, "derivatives of the halo are not given back"},
    {Fault::own_noise, "noise at the part's own numbers of arcs"},
    {Fault::whole_cut_edges, "both parts take the whole derivative of a cut edge"},
    {Fault::own_masks, "dropout at the part's own numbers of nodes"},
    {Fault::no_sum, "gradients are not added up"}};
/// Of networks with a polynomial filter of GeneralLinear<2> maps and fixed filters, whose scalings have 4 numbers.
inline constexpr std::pair<Fault, const char*> filter_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::lost_sums, "derivatives of the halo are not given back"},
    {Fault::stale_scales, "scalings of the halo are not fetched"},
    {Fault::lost_scales, "derivatives of the halo's scalings are not given back"},
    {Fault::own_degrees, "degrees of the halo in the part"}};
/// Of networks with attention, whose parts take derivatives of cut edges through their own arcs.
inline constexpr std::pair<Fault, const char*> attention_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::lost_sums, "derivatives of the halo are not given back"},
    {Fault::own_noise, "noise at the part's own numbers of arcs"},
    {Fault::own_masks, "dropout at the part's own numbers of nodes"},
    {Fault::no_sum, "gradients are not added up"}};
/// Of cooperative networks whose learners look at neighbours, and of bundle networks.
inline constexpr std::pair<Fault, const char*> cooperative_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::own_masks, "noise and dropout at the part's own numbers of nodes"},
    {Fault::own_degrees, "degrees of the halo in the part"},
    {Fault::no_sum, "gradients are not added up"}};
/// Of cooperative networks with batch norm.
inline constexpr std::pair<Fault, const char*> batch_norm_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::own_statistics, "means and variances of the part's own rows"},
    {Fault::no_sum, "gradients are not added up"}};
/// Of bundle networks with rows of 6 numbers that project on eigenvectors or on the kernel of the Laplacian.
inline constexpr std::pair<Fault, const char*> projection_faults[] = {
    {Fault::own_projections, "projections of the part's own rows"}};
/// Of cooperative networks on directed arcs whose learners look at neighbours.
inline constexpr std::pair<Fault, const char*> directed_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::own_degrees, "degrees of the halo in the part"},
    {Fault::undirected_degrees, "degrees of the halo without directions"}};
/// Of networks of continuous time with steps that are chosen. (Norms that differ from rank to rank would not end: ranks
/// would take different numbers of steps and wait for each other.)
inline constexpr std::pair<Fault, const char*> flow_faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::lost_sums, "derivatives of the halo are not given back"},
    {Fault::own_noise, "noise at the part's own numbers of arcs"},
    {Fault::whole_cut_edges, "both parts take the whole derivative of a cut edge"},
    {Fault::own_masks, "dropout at the part's own numbers of nodes"},
    {Fault::no_sum, "gradients are not added up"},
    {Fault::smallest_norm, "the error of a step is that of one part"}};

class FaultyExchange final : public sheafnn::GraphPart {
 public:
  using Index = sheafnn::Index;

  /// \param arcs  of the part
  FaultyExchange(sheafnn::distributed::RowExchange& exchange, Fault fault)
      : GraphPart(broken(exchange.numbers(), fault)), exchange_(&exchange), fault_(fault) {}

  void begin_fetch(float* rows, Index width) override { exchange_->begin_fetch(rows, width); }
  void begin_fetch(double* rows, Index width) override {
    fetches_ = fault_ != Fault::stale_halo && !(fault_ == Fault::stale_scales && width == 4);
    if (fetches_) exchange_->begin_fetch(rows, width);
  }
  void end_fetch() override {
    if (fetches_) exchange_->end_fetch();
  }
  void give_back(float* rows, Index width) override { exchange_->give_back(rows, width); }
  void give_back(double* rows, Index width) override {
    const Index own = numbers().own, nodes = static_cast<Index>(numbers().node.size());
    if (fault_ == Fault::lost_sums || (fault_ == Fault::lost_scales && width == 4))
      std::fill(rows + own * width, rows + nodes * width, 0.0);
    exchange_->give_back(rows, width);
  }
  void sum(std::span<float> values, std::span<double> more) override { exchange_->sum(values, more); }
  void sum(std::span<double> values, std::span<double> more) override {
    if (fault_ == Fault::own_statistics &&
        more.empty()) {  // means follow: sums of as many rows as there are in all
      for (double& value : values)
        value *= static_cast<double>(numbers().total_nodes) / static_cast<double>(numbers().own);
      return;
    }
    if (fault_ == Fault::own_projections && more.empty() && values.size() % 6 == 0 &&
        static_cast<Index>(values.size()) != numbers().total_nodes)
      return;
    if (fault_ == Fault::no_sum && !more.empty()) return;
    exchange_->sum(values, more);
  }

  [[nodiscard]] double largest(double value) override {
    return fault_ == Fault::smallest_norm ? -exchange_->largest(-value) : exchange_->largest(value);
  }

 private:
  static sheafnn::PartNumbers broken(sheafnn::PartNumbers numbers, Fault fault) {
    for (Index arc = 0; fault == Fault::own_noise && arc < numbers.arc.size(); ++arc) numbers.arc.set(arc, arc);
    if (fault == Fault::whole_cut_edges) numbers.cut.clear();
    if (fault == Fault::own_degrees) {
      for (auto* degree : {&numbers.degree, &numbers.in_degree})
        std::fill(degree->begin() + numbers.own, degree->end(), Index{1});
    }
    if (fault == Fault::own_sizes) {  // of cut hyperedges
      std::fill(numbers.degree.begin() + numbers.interior, numbers.degree.end(), Index{2});
    }
    if (fault == Fault::undirected_degrees) numbers.in_degree = numbers.degree;
    if (fault == Fault::own_masks) std::iota(numbers.node.begin(), numbers.node.end(), Index{0});
    return numbers;
  }

  sheafnn::distributed::RowExchange* exchange_;
  Fault fault_;
  bool fetches_ = true;
};

}  // namespace test
