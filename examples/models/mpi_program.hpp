/// \file
/// What the command-line programs on MPI share: arguments, partitions, and one-line errors that name the rank.
#pragma once

#include <cstdio>
#include <sheafnn/distributed.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/program.hpp"

namespace programs {

inline constexpr const char* partition_help =
    "how the graph is cut: metis, contiguous, or a text file with the number of a part for every node";

/// The partition of --partition. \param graph  a Graph, or a Hypergraph
template <class GraphType>
[[nodiscard]] sheafnn::distributed::Partition partition_of(sheafnn::distributed::Communicator& ranks,
                                                           const std::string& choice, const GraphType& graph) {
  namespace mpi = sheafnn::distributed;
  if (choice == "metis") return mpi::metis_partition(ranks, graph);
  if (choice == "contiguous") return mpi::contiguous_partition(graph, ranks.size());
  return mpi::read_partition(choice, graph.node_count(), ranks.size());
}

/// Parses the arguments on every rank and runs body(), inside of sheafnn::distributed::run().
///
/// \returns what body() returns, or an exit code
/// \throws what body() throws, with the names of options in place of members
template <class Body>
int run_on_rank(CLI::App& app, const std::vector<std::string>& arguments, const Body& body) {
  try {
    refuse_empty_arguments(arguments);
    refuse_misread_numbers(app);
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {  // the same on all ranks
    const bool root = sheafnn::distributed::Communicator().is_root();
    if (error.get_exit_code() == 0) return root ? app.exit(error) : 0;
    if (root) std::fprintf(stderr, "%s: %s\n", app.get_name().c_str(), parse_message(app, error).c_str());
    return exit_bad_input;
  }
  try {
    return body();
  } catch (const std::invalid_argument& error) {
    throw std::invalid_argument(in_options(app, error.what()));
  }
}

}  // namespace programs
