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

enum class Fault { stale_halo, lost_sums, own_noise, whole_cut_edges, own_masks, no_sum };
inline constexpr std::pair<Fault, const char*> faults[] = {
    {Fault::stale_halo, "rows of the halo are not fetched"},
    {Fault::lost_sums, "derivatives of the halo are not given back"},
    {Fault::own_noise, "noise at the part's own numbers of arcs"},
    {Fault::whole_cut_edges, "both parts take the whole derivative of a cut edge"},
    {Fault::own_masks, "dropout at the part's own numbers of nodes"},
    {Fault::no_sum, "gradients are not added up"}};

class FaultyExchange final : public sheafnn::GraphPart {
 public:
  using Index = sheafnn::Index;

  /// \param arcs  of the part
  FaultyExchange(sheafnn::distributed::RowExchange& exchange, Fault fault)
      : GraphPart(broken(exchange.numbers(), fault)), exchange_(&exchange), fault_(fault) {}

  void begin_fetch(float* rows, Index width) override { exchange_->begin_fetch(rows, width); }
  void begin_fetch(double* rows, Index width) override {
    if (fault_ != Fault::stale_halo) exchange_->begin_fetch(rows, width);
  }
  void end_fetch() override {
    if (fault_ != Fault::stale_halo) exchange_->end_fetch();
  }
  void give_back(float* rows, Index width) override { exchange_->give_back(rows, width); }
  void give_back(double* rows, Index width) override {
    const Index own = numbers().own, nodes = static_cast<Index>(numbers().node.size());
    if (fault_ == Fault::lost_sums) std::fill(rows + own * width, rows + nodes * width, 0.0);
    exchange_->give_back(rows, width);
  }
  void sum(std::span<float> values, std::span<double> more) override { exchange_->sum(values, more); }
  void sum(std::span<double> values, std::span<double> more) override {
    if (fault_ != Fault::no_sum) exchange_->sum(values, more);
  }

 private:
  static sheafnn::PartNumbers broken(sheafnn::PartNumbers numbers, Fault fault) {
    if (fault == Fault::own_noise) std::iota(numbers.arc.begin(), numbers.arc.end(), 0U);
    if (fault == Fault::whole_cut_edges) numbers.cut.clear();
    if (fault == Fault::own_masks) std::iota(numbers.node.begin(), numbers.node.end(), Index{0});
    return numbers;
  }

  sheafnn::distributed::RowExchange* exchange_;
  Fault fault_;
};

}  // namespace test
