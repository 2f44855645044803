/// \file
/// Fuzz target: a Matrix Market file, as a graph and as features.
#include "sheafnn/io/matrix_market.hpp"

#include "dataset_checks.hpp"

// A graph and features of a matrix take memory for every row, though a file need not list any: matrices of more rows than
// a thousand are read, but not turned into these.
SHEAFNN_FUZZ_TARGET(matrix_market, 128, 1 << 18) {
  sheafnn::io::MatrixEntries matrix;
  const bool good = fuzz::keeps_contract<std::runtime_error>([&] {
    matrix = sheafnn::io::detail::MatrixMarketReader(
                 sheafnn::io::detail::LineReader("a.mtx", sheafnn::io::Bytes(input.begin(), input.end())))
                 .read();
  });
  if (!good) return;
  for (std::size_t i = 0; i < matrix.entries.size(); ++i) {
    const auto& entry = matrix.entries[i];
    fuzz::expect(entry.row >= 0 && entry.row < matrix.rows && entry.column >= 0 && entry.column < matrix.columns,
                 "matrix market: an entry outside of the matrix");
    fuzz::expect(std::isfinite(entry.value) && entry.value != 0, "matrix market: a value");
    fuzz::expect(i == 0 || std::pair(matrix.entries[i - 1].row, matrix.entries[i - 1].column) <
                               std::pair(entry.row, entry.column),
                 "matrix market: order");
  }
  if (matrix.rows > 1000) return;
  const sheafnn::NodeFeatures features = sheafnn::io::to_features(matrix);
  fuzz::expect(features.rows() == matrix.rows && features.columns() == matrix.columns, "matrix market: features");
  fuzz::keeps_contract<std::runtime_error>([&] { fuzz::expect_graph(sheafnn::io::to_graph(matrix)); });
}
