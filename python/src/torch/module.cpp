/// \file
/// sheafnn._core._torch: layers and networks on tensors that come as addresses. It knows no PyTorch. What people import is
/// sheafnn.torch.
#include "../module.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <sheafnn/graph/features.hpp>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "../arrays.hpp"
#include "../given_arrays.hpp"
#include "../interpreter.hpp"
#include "device.hpp"
#include "linear.hpp"
#include "pass.hpp"
#include "rotations.hpp"

namespace python {

namespace {

template <class T>
[[nodiscard]] T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

constexpr Index most_numbers = 2147483647;

/// What a row of an index holds.
struct IndexRow {
  std::string_view what;  ///< "node"
  Index count;            ///< numbers are below
};

/// The columns of an index as pairs.
///
/// \param name     of the argument, for messages
/// \param columns  number of columns
/// \param address  2 × columns values
/// \throws std::invalid_argument  a number out of range
template <class Pair>
std::vector<Pair> pairs_of(std::string_view name, Index columns, std::uintptr_t address,
                           const IndexRow (&rows)[2]) {
  const std::int64_t* const numbers = at<const std::int64_t>(address);
  std::vector<Pair> pairs(static_cast<std::size_t>(columns));
  for (Index i = 0; i < columns; ++i) {
    for (const int row : {0, 1}) {
      const std::int64_t number = numbers[row * columns + i];
      const auto& [what, count] = rows[row];
      if (number >= 0 && number < count) continue;
      sheafnn::throw_invalid_argument(sheafnn::detail::concat(name, "[", row, ", ", i, "]"), number,
                                      sheafnn::detail::concat("a ", what, " number must be between 0 and ",
                                                              count - 1));
    }
    pairs[static_cast<std::size_t>(i)] = {static_cast<std::int32_t>(numbers[i]),
                                          static_cast<std::int32_t>(numbers[columns + i])};
  }
  return pairs;
}

/// \param columns  number of columns of hyperedge_index
/// \param address  2 × columns values
/// \throws std::invalid_argument  a number out of range, a column given twice
std::shared_ptr<const ColumnHypergraph> make_hypergraph(Index nodes, Index columns, std::uintptr_t address) {
  const GilRelease release;
  sheafnn::require_between("nodes", nodes, 0, most_numbers);
  constexpr std::string_view name = "hyperedge_index";
  const auto pairs =
      pairs_of<sheafnn::Incidence>(name, columns, address, {{"node", nodes}, {"hyperedge", most_numbers}});
  Index hyperedges = 0;
  for (const sheafnn::Incidence& pair : pairs) hyperedges = std::max(hyperedges, Index{pair.hyperedge} + 1);
  return std::make_shared<ColumnHypergraph>(sheafnn::Hypergraph(nodes, hyperedges, pairs, name));
}

/// \param columns   number of columns of edge_index
/// \param address   2 × columns values
/// \param directed  whether edges may be there in one direction only
/// \throws std::invalid_argument  a node out of range, an arc without its reverse
std::shared_ptr<const ColumnGraph> make_graph(Index nodes, Index columns, std::uintptr_t address, bool directed) {
  const GilRelease release;
  sheafnn::require_between("nodes", nodes, 0, most_numbers);
  const std::int64_t *source = at<const std::int64_t>(address), *target = source + columns;
  const auto pairs = pairs_of<sheafnn::Edge>("edge_index", columns, address, {{"node", nodes}, {"node", nodes}});
  auto r = std::make_shared<ColumnGraph>();
  r->columns = columns;
  r->graph = sheafnn::Graph(nodes, pairs);
  const sheafnn::Graph& graph = r->graph;
  for (Index arc = 0; arc < graph.arc_count() && !directed; ++arc) {
    if (graph.listed(arc)) continue;
    const auto pair = [&](Index u, Index v) { return sheafnn::detail::concat("(", u, ", ", v, ")"); };
    sheafnn::throw_invalid_argument(
        "edge_index", pair(graph.target(arc), graph.source(arc)),
        sheafnn::detail::concat("it has no ", pair(graph.source(arc), graph.target(arc)),
                                ": edges must be there in both directions (torch_geometric.utils.to_undirected)"));
  }
  r->column_of_arc.resize(static_cast<std::size_t>(graph.arc_count()));
  for (Index i = 0; i < columns; ++i) {
    if (source[i] == target[i]) continue;
    const auto* begin = graph.targets().data() + graph.first_arc(source[i]);
    const auto* end = graph.targets().data() + graph.first_arc(source[i] + 1);
    const auto arc = std::lower_bound(begin, end, static_cast<std::int32_t>(target[i])) - graph.targets().data();
    r->column_of_arc[static_cast<std::size_t>(arc)] = i;
  }
  return r;
}

std::shared_ptr<const sheafnn::NodeFeatures> dense_features(std::uintptr_t address, bool wide, Index rows,
                                                            Index columns) {
  const GilRelease release;
  const auto count = static_cast<std::size_t>(rows * columns);
  const auto make = [&](const auto* values) {
    return std::make_shared<const sheafnn::NodeFeatures>(
        sheafnn::NodeFeatures::from_dense(std::span(values, count), rows, columns, sheafnn::MissingValues::mark));
  };
  return wide ? make(at<const double>(address)) : make(at<const float>(address));
}

/// A pass whose backward pass may follow; gives the pass back to its plan when nobody needs it any more.
struct Lease {
  std::shared_ptr<Plan> plan;
  std::unique_ptr<Pass> pass;
  std::mutex mutex;

  ~Lease() { give_back(); }
  void give_back() {
    if (pass) plan->give_back(std::move(pass));
  }
};

struct Ticket;
std::mutex tickets_mutex;
std::unordered_map<std::int64_t, std::weak_ptr<Ticket>> tickets;  ///< by the number that their tensors hold
std::int64_t last_ticket = 0;

/// What owns a lease, and its number for callers that keep a tensor in its place.
struct Ticket {
  std::shared_ptr<Lease> lease;
  std::int64_t number = 0;  ///< 0: no tensor holds it

  explicit Ticket(std::shared_ptr<Lease> of) : lease(std::move(of)) {}
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;
  ~Ticket() {
    if (number == 0) return;
    const std::lock_guard lock(tickets_mutex);
    tickets.erase(number);
  }
};

/// An array of a number for ticket_of(), which owns the ticket.
[[nodiscard]] nb::object ticket_array(const std::shared_ptr<Ticket>& ticket) {
  {
    const std::lock_guard lock(tickets_mutex);
    if (ticket->number == 0) tickets[ticket->number = ++last_ticket] = ticket;
  }
  auto* const owned = new std::shared_ptr<Ticket>(ticket);
  const nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::shared_ptr<Ticket>*>(p); });
  const std::size_t shape[1] = {1};
  return nb::cast(Output<std::int64_t>(&ticket->number, 1, shape, owner));
}

/// \param activation     of a layer, by its index in the enumeration
/// \param features_stay  the features of a layer stay where they are until the last backward pass
/// \param parameters     number and address of each
/// \param stream, kl     of a device: its stream, and where the KL term goes; 0: none
/// \returns the KL term of the CPU, and what owns what backward() reads; None where it will not be called
nb::tuple forward(const std::shared_ptr<Plan>& plan, std::uint64_t seed, std::uint32_t epoch, double dropout,
                  double input_dropout, bool training, bool keep, int threads, int activation, bool features_stay,
                  const std::vector<NumberedArray>& parameters, std::uintptr_t features, std::uintptr_t output,
                  std::uintptr_t stream, std::uintptr_t kl) {
  auto lease = std::make_shared<Lease>();
  double value = 0;
  {
    const GilRelease release;
    lease->plan = plan;
    lease->pass = plan->take();
    value = lease->pass->run({{seed, epoch, dropout, input_dropout, training, keep, threads,
                               static_cast<sheafnn::layers::Activation>(activation), features_stay},
                              parameters,
                              at<const void>(features),
                              at<void>(output),
                              at<void>(stream),
                              at<void>(kl)});
    if (!keep) {
      lease.reset();
    } else if (lease->pass->keeps_nothing()) {
      lease->give_back();
    }
  }
  if (!lease) return nb::make_tuple(value, nb::none());
  return nb::make_tuple(value, std::make_shared<Ticket>(std::move(lease)));
}

/// \param features_bar   0: not wanted
/// \param gradients      number and address of the wanted gradients
/// \param stream         of a device
/// \param kl_bar_at      on a device, in place of kl_bar; 0: none
void backward(const std::shared_ptr<Ticket>& ticket, std::uintptr_t output_bar, double kl_bar,
              std::uintptr_t features_bar, const std::vector<NumberedArray>& gradients, std::uintptr_t stream,
              std::uintptr_t kl_bar_at) {
  const GilRelease release;
  Lease& lease = *ticket->lease;
  const std::lock_guard lock(lease.mutex);
  if (!lease.pass) lease.pass = lease.plan->take();
  lease.pass->differentiate({at<const void>(output_bar), kl_bar, at<void>(features_bar), gradients,
                             at<void>(stream), at<const void>(kl_bar_at)});
  if (lease.pass->keeps_nothing()) lease.give_back();
}

/// Addresses of three arrays of a linear layer.
using LinearAddresses = std::tuple<std::uintptr_t, std::uintptr_t, std::uintptr_t>;
template <class T>
[[nodiscard]] LinearArrays<T> linear_arrays(const LinearAddresses& of) {
  return {at<T>(std::get<0>(of)), at<T>(std::get<1>(of)), at<T>(std::get<2>(of))};
}

/// \param of  x, W and b
/// \param y   the output
void linear(bool wide, int threads, Index rows, Index inputs, Index outputs, const LinearAddresses& of,
            std::uintptr_t y) {
  const GilRelease release;
  const auto compute = [&]<class S>() {
    linear_layer<S>(threads, rows, inputs, outputs, linear_arrays<const S>(of), at<S>(y));
  };
  wide ? compute.operator()<double>() : compute.operator()<float>();
}
/// \param of    x, W and the derivative of the output
/// \param bars  derivatives of x, W and b; x 0: not wanted
void linear_backward(bool wide, int threads, Index rows, Index inputs, Index outputs, const LinearAddresses& of,
                     const LinearAddresses& bars) {
  const GilRelease release;
  const auto compute = [&]<class S>() {
    const auto [x, weight, y_bar] = linear_arrays<const S>(of);
    linear_layer_backward<S>(threads, rows, inputs, outputs, x, weight, y_bar, linear_arrays<S>(bars));
  };
  wide ? compute.operator()<double>() : compute.operator()<float>();
}

/// Gives a seed and a step, and counts the step in place. \param address  of the two numbers
std::pair<std::int64_t, std::int64_t> next_step(std::uintptr_t address) {
  std::int64_t* const numbers = at<std::int64_t>(address);
  return {numbers[0], numbers[1]++};
}

/// The number of entries that are not 0, in every row of this length.
Index count_in_rows(std::uintptr_t address, bool wide, Index rows, Index columns, Index every) {
  const GilRelease release;
  const auto count = [&](const auto* values) {
    Index r = 0;
    for (Index u = 0; u < rows; u += every) {
      r += columns - std::count(values + u * columns, values + (u + 1) * columns, 0);
    }
    return r;
  };
  return wide ? count(at<const double>(address)) : count(at<const float>(address));
}

/// \returns the ticket of a number that a tensor holds
std::shared_ptr<Ticket> ticket_of(std::int64_t number) {
  const std::lock_guard lock(tickets_mutex);
  const auto found = tickets.find(number);
  std::shared_ptr<Ticket> r = found == tickets.end() ? nullptr : found->second.lock();
  if (!r) throw std::runtime_error("backward: the forward pass has kept nothing for it");
  return r;
}

/// Texts of the activations, in the order of their indices.
[[nodiscard]] nb::list activation_texts() {
  nb::list r;
  for (const std::string_view name : names_of(sheafnn::layers::Activation())) r.append(std::string(name));
  return r;
}

}  // namespace

void bind_torch(nb::module_& core) {
  nb::module_ module = core.def_submodule("_torch", "Layers and networks on tensors; use sheafnn.torch.");
  nb::class_<Relations>(module, "Relations");
  nb::class_<ColumnHypergraph, Relations>(module, "Hypergraph")
      .def_prop_ro("node_count", [](const ColumnHypergraph& of) { return of.graph.node_count(); })
      .def_prop_ro("hyperedge_count", [](const ColumnHypergraph& of) { return of.graph.hyperedge_count(); });
  nb::class_<ColumnGraph, Relations>(module, "Graph")
      .def_prop_ro("node_count", [](const ColumnGraph& graph) { return graph.graph.node_count(); })
      .def_prop_ro("edge_count", [](const ColumnGraph& graph) { return graph.graph.edge_count(); })
      .def("require_one_column_each", &ColumnGraph::require_one_column_each);
  nb::class_<ColumnSheaf, Relations>(module, "Sheaf");
  nb::class_<sheafnn::NodeFeatures>(module, "Features");
  nb::class_<Architecture>(module, "Architecture")
      .def_prop_ro("names", [](const Architecture& of) { return of.parameters().names; })
      .def_prop_ro("shapes", [](const Architecture& of) { return of.parameters().shapes; })
      .def("initial", &Architecture::initial)
      .def_prop_ro("width", &Architecture::width)
      .def_prop_ro("row", &Architecture::row)
      .def_prop_ro("bayesian", &Architecture::bayesian)
      .def_prop_ro("on_hypergraphs", &Architecture::on_hypergraphs)
      .def_prop_ro("has_given_sheaf", &Architecture::has_given_sheaf)
      .def_prop_ro("metadata", &Architecture::metadata);
  nb::class_<Plan>(module, "Plan");
  nb::class_<Ticket>(module, "Ticket").def("array", &ticket_array);
  module.def("ticket", &ticket_of);
  module.def("next_step", &next_step);
  module.def("count_in_rows", &count_in_rows);
  module.def("architecture", [](const std::string& kind, const std::string& maps, Index stalk_dim, bool wide,
                                Index features, Index classes, const std::map<std::string, std::string>& options,
                                int device) {
    const Setting setting{kind, maps, stalk_dim, wide, features, classes, options, device};
    return std::const_pointer_cast<Architecture>(device < 0 ? make_architecture(setting)
                                                            : make_device_architecture(setting));
  });
  module.def("graph", [](Index nodes, Index columns, std::uintptr_t address, bool directed) {
    return std::const_pointer_cast<ColumnGraph>(make_graph(nodes, columns, address, directed));
  });
  module.def("sheaf", [](const std::shared_ptr<ColumnGraph>& graph, const Input<double>& maps,
                         const Input<double>& weights, const Input<std::int64_t>& labels) {
    return std::make_shared<ColumnSheaf>(graph, given_arrays(maps, weights, labels));
  });
  module.def("hypergraph", [](Index nodes, Index columns, std::uintptr_t address) {
    return std::const_pointer_cast<ColumnHypergraph>(make_hypergraph(nodes, columns, address));
  });
  module.def("features", [](std::uintptr_t address, bool wide, Index rows, Index columns) {
    return std::const_pointer_cast<sheafnn::NodeFeatures>(dense_features(address, wide, rows, columns));
  });
  module.def(
      "plan",
      [](const std::shared_ptr<Architecture>& architecture, const std::shared_ptr<Relations>& relations,
         const std::shared_ptr<sheafnn::NodeFeatures>& features) {
        return std::make_shared<Plan>(architecture, relations, features);
      },
      nb::arg(), nb::arg(), nb::arg().none());
  module.def("forward", &forward);
  module.def("backward", &backward);
  module.def("linear", &linear);
  module.def("linear_backward", &linear_backward);
  module.attr("activations") = activation_texts();
  module.attr("device_kind") = std::string(device_kind());
  module.attr("device_networks") = nb::cast(device_networks());
  bind_torch_rotations(module);
}

}  // namespace python
