/// \file
/// Fuzz target: a node table and an edge list as delimited text. The first byte chooses the separator, a zero byte ends the
/// node table.
#include <algorithm>

#include "dataset_checks.hpp"
#include "memory_file.hpp"
#include "sheafnn/io/csv_edges.hpp"
#include "sheafnn/io/csv_nodes.hpp"

namespace {

using sheafnn::io::Bytes;
using sheafnn::io::CsvReader;

/// What is written as delimited text is read back, behind a first field: a byte order mark there belongs to the file.
void check_record(std::vector<std::string> fields) {
  fields.insert(fields.begin(), "first");
  const std::string text = sheafnn::io::csv_record(fields);
  CsvReader again("again", Bytes(text.begin(), text.end()), ',');
  fuzz::expect(again.next() && again.fields() == fields, "csv: a record that is not read back");
}

}  // namespace

SHEAFNN_FUZZ_TARGET(csv, 512, 1 << 18) {
  if (input.empty()) return;
  const char separators[] = {'\0', ',', ';', '\t', '\0', '|'};
  const char separator = separators[input[0] % 6];
  const fuzz::Input rest = input.subspan(1);
  const std::size_t end = static_cast<std::size_t>(std::find(rest.begin(), rest.end(), 0) - rest.begin());
  const fuzz::Input nodes = rest.first(end), edges = rest.subspan(std::min(rest.size(), end + 1));
  const auto reader = [&](const char* name, fuzz::Input text) {
    return CsvReader(name, Bytes(text.begin(), text.end()), separator);
  };
  fuzz::keeps_contract<std::runtime_error>([&] {
    CsvReader records = reader("nodes.csv", nodes);
    while (records.next()) check_record(records.fields());
  });
  sheafnn::io::NodeTable table;
  fuzz::keeps_contract<std::runtime_error, std::invalid_argument>(
      [&] { table = sheafnn::io::read_node_table(reader("nodes.csv", nodes), "label"); });
  fuzz::keeps_contract<std::runtime_error, std::invalid_argument>([&] {
    const std::vector<std::string> words = {"NA", "x"};
    static_cast<void>(sheafnn::io::read_node_table(reader("nodes.csv", nodes), "label", words));
  });
  if (!table.names.empty()) {
    fuzz::expect(table.features.rows() == static_cast<sheafnn::Index>(table.names.size()),
                 "csv: rows of features");
    fuzz::expect(table.labels.empty() || table.labels.size() == table.names.size(), "csv: labels");
    for (const std::int32_t label : table.labels) {
      fuzz::expect(label >= -1 && label < static_cast<std::int32_t>(table.class_names.size()), "csv: a label");
    }
  }
  fuzz::keeps_contract<std::runtime_error>([&] {
    const auto numbers = table.names.empty() ? sheafnn::io::detail::NodeNumbers("edges", 1000)
                                             : sheafnn::io::detail::NodeNumbers("nodes.csv", table.names);
    fuzz::expect_graph(sheafnn::io::detail::read_edge_list(reader("edges.csv", edges), numbers));
    const sheafnn::io::detail::EdgeList list =
        sheafnn::io::detail::EdgeListReader(reader("edges.csv", edges), numbers,
                                            sheafnn::io::detail::EdgeAttributes::keep)
            .read();
    fuzz::expect(list.lines.size() == list.edges.size() &&
                     list.values.size() == list.edges.size() * list.names.size(),
                 "csv: numbers of edges");
  });
}
