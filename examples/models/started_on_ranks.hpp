/// \file
/// What the program train does under mpirun, where copies of them would train the same model side by side.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sheafnn/core/errors.hpp>
#include <sheafnn/io/lines.hpp>
#include <stdexcept>
#include <system_error>

namespace programs {

/// How many ranks mpirun has started this program on, as Open MPI and MPICH say it in the environment; 1 without.
[[nodiscard]] inline int started_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* text = std::getenv(name);
    int ranks = 0;
    if (text != nullptr && sheafnn::io::detail::parse_number(text, ranks) && ranks > 1) return ranks;
  }
  return 1;
}

/// On several ranks, replaces this program by another one, which is in the same folder and takes nearly all of its arguments.
///
/// \throws std::runtime_error  it cannot be started
inline void become_on_ranks(char** argv, const char* name) {
  const int ranks = started_ranks();
  if (ranks == 1) return;
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path program = self.parent_path() / name;
  execv(program.c_str(), argv);
  throw std::runtime_error(sheafnn::detail::concat("started on ", ranks, " ranks, for which there is ",
                                                   program.string(),
                                                   "; it cannot be started (it is built with -DSHEAFNN_MPI=ON)"));
}

}  // namespace programs
