// The folders below the networks, for checkers of sources; see ../../scripts/check_sources.sh.
#include <sheafnn/graph.hpp>
#include <sheafnn/io.hpp>
#include <sheafnn/rotation.hpp>
#include <sheafnn/sheaf.hpp>
#include <sheafnn/uncertainty.hpp>
