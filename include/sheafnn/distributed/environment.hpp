/// \file
/// run(): the frame of a program on MPI. An exception of one rank ends all ranks with one message that names it.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <thread>

#include "sheafnn/distributed/mpi.hpp"

namespace sheafnn::distributed {

namespace detail {

/// MPI from here to the end of the program. Rows are exchanged by the thread that began it.
class Environment {
 public:
  Environment(int& argc, char**& argv) {
    int provided = 0;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { MPI_Finalize(); }
};

/// Prints why this rank fails and ends all ranks. What is wrong for all ranks, all find at the same time: then rank 0 has
/// ended the others before they print.
[[noreturn]] inline void fail(const char* reason) {
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) std::this_thread::sleep_for(std::chrono::seconds(2));
  std::fprintf(stderr, "rank %d of %d: %s\n", rank, size, reason);
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();  // MPI_Abort does not return
}

}  // namespace detail

/// Initialises MPI, calls body() on every rank, and returns what it returns. Messages, and whatever else has to do with
/// MPI, must be gone when body() returns. When body() throws on a rank, the rank prints a line with its rank and what() to
/// the standard error output. It ends all ranks with status 1. Takes any arguments.
template <class Body>
int run(int argc, char** argv, const Body& body) {
  detail::Environment environment(argc, argv);
  try {
    return body();
  } catch (const std::bad_alloc&) {
    detail::fail(
        "out of memory; more ranks on more computers have smaller parts, and of a folder each reads its own rows "
        "only");
  } catch (const std::exception& error) {
    detail::fail(error.what());
  } catch (...) {
    detail::fail("an unknown error");
  }
}

}  // namespace sheafnn::distributed
