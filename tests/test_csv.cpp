// Delimited text: records, edge lists, node tables, datasets in folders of text files, and messages with file and line.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/graph/splits.hpp"
#include "sheafnn/io/csv.hpp"
#include "sheafnn/io/datasets.hpp"
#include "sheafnn/io/hypergraph.hpp"
#include "sheafnn/io/saved_names.hpp"
#include "sheafnn/io/text_dataset.hpp"
#include "temporary_folder.hpp"

namespace test_csv {
namespace {

using namespace sheafnn;
using namespace sheafnn::layers;
using io::CsvReader;
using Strings = std::vector<std::string>;

CsvReader reader(const std::string& text, char separator = '\0') {
  return {"t.csv", {text.begin(), text.end()}, separator};
}
std::vector<Strings> records(const std::string& text, char separator = '\0') {
  std::vector<Strings> r;
  for (CsvReader csv = reader(text, separator); csv.next();) r.push_back(csv.fields());
  return r;
}
std::string error_of(const std::string& text) {
  try {
    static_cast<void>(records(text));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "no error";
}

const std::string edge_text = "source,target\nada,bob\nbob,ada\nbob,\"c, d\"\neve,eve\nbob,eve\n";
const std::string node_text =
    "name,age,label,split,score\nada,1,red,train,0\nbob,2,blue,val,0.5\n\"c, d\",0,,,-3e2\neve,4,red,test,1\n"
    "zoe,5,-1,test,0\n";

struct Folder : test::TemporaryFolder {
  explicit Folder(const std::string& nodes = node_text, const std::string& edges = edge_text) {
    write("edges.csv", edges);
    write("nodes.csv", nodes);
  }
};
// The message with the folder taken off its front, or "no error".
std::string message_of(const test::TemporaryFolder& folder, const io::TextOptions& options = {},
                       DatasetUse use = DatasetUse::training) {
  try {
    static_cast<void>(io::load_text_folder(folder.path(), options, use));
  } catch (const std::runtime_error& error) {
    const std::string message = error.what(), front = folder.path().string();
    CHECK(message.find('\n') == std::string::npos);
    REQUIRE(message.starts_with(front));
    return message.substr(front.size() + 1);
  }
  return "no error";
}
std::string message_of_nodes(const std::string& nodes) { return message_of(Folder(nodes)); }
std::string message_of_edges(const std::string& edges) { return message_of(Folder(node_text, edges)); }

std::vector<double> dense(const NodeFeatures& features) {
  std::vector<double> r(static_cast<std::size_t>(features.rows() * features.columns()));
  for (Index u = 0; u < features.rows(); ++u) {
    for (Index k = features.offsets()[static_cast<std::size_t>(u)];
         k < features.offsets()[static_cast<std::size_t>(u) + 1]; ++k) {
      const std::size_t i = static_cast<std::size_t>(k);
      r[static_cast<std::size_t>(u * features.columns() + features.column_of()[i])] = features.values()[i];
    }
  }
  return r;
}
std::vector<Edge> edges_of(const Graph& graph) { return {graph.edges().begin(), graph.edges().end()}; }

// What edge_text and node_text say.
void check_small(const Dataset& data) {
  CHECK(data.node_names == Strings{"ada", "bob", "c, d", "eve", "zoe"});
  CHECK(data.class_names == Strings{"blue", "red"});
  CHECK(data.class_count == 2);
  CHECK(data.labels == std::vector<std::int32_t>{1, 0, -1, 1, -1});
  CHECK(dense(data.features) == std::vector<double>{1, 0, 2, 0.5, 0, -300, 4, 1, 5, 0});
  CHECK(edges_of(data.graph) == std::vector<Edge>{{0, 1}, {1, 2}, {1, 3}});
  CHECK(data.graph.dropped_self_loops() == 1);
  CHECK(data.graph.merged_duplicates() == 1);
  for (const Index arc : {0, 1, 2, 3}) CHECK(data.graph.listed(arc));  // ada and bob both ways, from bob to others
  for (const Index arc : {4, 5}) CHECK_FALSE(data.graph.listed(arc));
  CHECK(data.graph.degree(4) == 0);
}

}  // namespace

TEST_CASE("CSV: separators, quotes, blanks, line ends and byte order marks") {
  const std::vector<Strings> two = {{"a", "b"}, {"c", "d e"}};
  CHECK(records("a,b\nc,d e\n") == two);
  CHECK(records("a;b\r\nc;d e") == two);
  CHECK(records("\n\na\tb\n\n \nc\td e\n") == two);
  CHECK(records("\xEF\xBB\xBF\"a\", b \n  \"c\" ,\"d e\"\r\n") == two);
  CHECK(records("a;b;x,y\n1;2;3,5\n") == std::vector<Strings>{{"a", "b", "x,y"}, {"1", "2", "3,5"}});
  CHECK(records("a,b\nc,d", '\t') == std::vector<Strings>{{"a,b"}, {"c,d"}});
  CHECK(records("a\t\tb\t\n", '\t') == std::vector<Strings>{{"a", "", "b", ""}});
  CHECK(records("\"a \"\"b\"\", c\",\"d\ne\"\n\"\"\n") == std::vector<Strings>{{"a \"b\", c", "d\ne"}, {""}});
  CHECK(records(",\n") == std::vector<Strings>{{"", ""}});
  CHECK(records("Zo\xC3\xAB,\xF0\x9F\x90\x91\n") == std::vector<Strings>{{"Zo\xC3\xAB", "\xF0\x9F\x90\x91"}});
  CHECK(records("  \n \t \n\na;b\n1;2\n") == std::vector<Strings>{{"a", "b"}, {"1", "2"}});
  CHECK(records("\t\n\t\n\t\na,b\n1,2\n") == std::vector<Strings>{{"a", "b"}, {"1", "2"}});
  CHECK(records(" \n\ta\tb\n") == std::vector<Strings>{{"", "a", "b"}});
  CHECK(records("").empty());
  CHECK(records("\xEF\xBB\xBF\r\n").empty());
}

TEST_CASE("numbers in text may have a sign") {
  double number = 0;
  CHECK(io::detail::parse_number(" +1.5", number));
  CHECK(number == 1.5);
  CHECK(io::detail::parse_number("-2e1", number));
  CHECK(number == -20);
  for (const char* text : {"+", "++1", "+-1", "+ 1", "1+"}) CHECK_FALSE(io::detail::parse_number(text, number));
}

TEST_CASE("numbers in text that are too small are rounded, what is too large is refused") {
  struct Case {
    const char* text;
    double value;
  };
  const std::string zeros = "0." + std::string(400, '0') + "12";
  for (const Case& c : {Case{"1e-400", 0},
                        {"-1e-400", 0},
                        {" +1.5e-99999999999999999999 ", 0},
                        {"4.9e-324", 5e-324},
                        {"1e-320", 1e-320},
                        {"3e-324", 5e-324},
                        {zeros.c_str(), 0}}) {
    CAPTURE(c.text);
    double number = 1;
    CHECK(io::detail::parse_number(c.text, number));
    CHECK(number == c.value);
  }
  float single = 1;
  CHECK(io::detail::parse_number("1e-60", single));
  CHECK(single == 0);
  CHECK_FALSE(io::detail::parse_number("1e60", single));
  double number = 0;
  for (const char* text : {"1e400", "-1e400", "1e99999999999999999999", "1e-400x", "1e-400 2"})
    CHECK_FALSE(io::detail::parse_number(text, number));
  std::int64_t whole = 0;
  CHECK_FALSE(io::detail::parse_number("-99999999999999999999", whole));
}

TEST_CASE("CSV: what is written is read back") {
  const Strings fields = {"a", "", " b ", "c, d", "e \"f\"", "g\nh", "i;j", "k\tl", "\r"};
  CHECK(records(io::csv_record(fields) + "\n") == std::vector<Strings>{fields});
  CHECK(io::csv_record(Strings{"a b", "c\"d"}) == "a b,\"c\"\"d\"");
}

TEST_CASE("CSV: bad quotes and other encodings are refused with their line") {
  CHECK(error_of("a,b\n\n\"c\nd\",\"e\n\n") == "t.csv:4: a quoted field begins here and is not closed");
  CHECK(error_of("a,b\n\"c\"d,e\n") ==
        "t.csv:2: 'd' follows a closing quote; a quote inside a quoted field is written twice");
  CHECK(error_of("a,b\nc,d\"e\n") ==
        "t.csv:2: field 2 has a quote inside: 'd\"e'; such a field stands in quotes, "
        "with the quote inside written twice");
  for (const char* bad :
       {"\xE9", "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82", "\xF8\x88\x80\x80\x80"}) {
    CHECK(error_of(std::string("a,b\nc,") + bad + "\n") ==
          "t.csv:2: is not UTF-8 text; save the file in that encoding");
  }
  CHECK(error_of(std::string("a\0b\n", 4)) == "t.csv:1: is not UTF-8 text; save the file in that encoding");
}

TEST_CASE("text folder: names, unknown labels, a split, features") {
  const Folder folder;
  check_small(io::load_text_folder(folder.path()));
  const Dataset data = io::load_dataset((folder.path() / "").string());
  check_small(data);
  CHECK(data.name == folder.path().filename().string());
  REQUIRE(data.splits.size() == 1);
  CHECK(data.splits[0].train == std::vector<std::int32_t>{0});
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{1});
  CHECK(data.splits[0].test == std::vector<std::int32_t>{3, 4});
  CHECK(io::load_text_folder(folder.path(), {}, DatasetUse::own_splits).splits.empty());
  check_small(io::load_csv_dataset(folder / "edges.csv", folder / "nodes.csv"));
  // An edge list without a header, separated by tabs; Windows line ends.
  std::filesystem::remove(folder / "edges.csv");
  folder.write("edges.tsv", "ada\tbob\r\nbob\tada\r\nbob\tc, d\r\neve\teve\r\nbob\teve");
  check_small(io::load_text_folder(folder.path()));
}

TEST_CASE("text folder: several splits, another label column, one-hot features") {
  const Folder folder("id,split_0,kind,split_1,label\n1,train,x,test,0\n2,validation,y,train,1\n3,test,x,val,2\n",
                      "1,2\n2,3\n");
  const Dataset data = io::load_text_folder(folder.path(), {.label = "kind"});
  CHECK(data.class_names == Strings{"x", "y"});
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[1].train == std::vector<std::int32_t>{1});
  CHECK(data.splits[1].validation == std::vector<std::int32_t>{2});
  CHECK(dense(data.features) == std::vector<double>{0, 1, 2});  // column label, a number
  const Dataset one_hot = io::load_text_folder(folder.path(), {.label = "kind", .identity_features = true});
  CHECK(dense(one_hot.features) == std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
}

TEST_CASE("text folder: a split without validation or test nodes") {
  const Folder folder("id,split_0,label,split_1,x\n1,train,0,train,1\n2,validation,1,train,2\n3,train,0,test,3\n",
                      "1,2\n2,3\n");
  const Dataset data = io::load_text_folder(folder.path());
  REQUIRE(data.splits.size() == 2);
  CHECK(data.splits[0].validation == std::vector<std::int32_t>{1});
  CHECK(data.splits[0].test.empty());
  CHECK(data.splits[1].validation.empty());
  CHECK(data.splits[1].test == std::vector<std::int32_t>{2});
}

TEST_CASE("text folder: labels, and words of one's own for unknown ones") {
  const Folder folder("name,label,x\nada,1.0,1\nbob,1,2\n\"c, d\",n.d.,3\neve,02,4\n");
  Dataset data = io::load_text_folder(folder.path(), {.missing_labels = Strings{"n.d."}});
  CHECK(data.class_names == Strings{"1", "02"});
  CHECK(data.labels == std::vector<std::int32_t>{0, 0, -1, 1});
  data = io::load_text_folder(folder.path(), {.missing_labels = Strings{}});
  CHECK(data.class_names == Strings{"02", "1", "1.0", "n.d."});
  CHECK(message_of(folder).starts_with(
      "nodes.csv:4: column 'label': label 'n.d.' is not allowed; it usually means"));
  Folder list("name,x\nada,1\nbob,2\n");
  std::filesystem::remove(list / "nodes.csv");
  list.write("edges.csv", "0,1\n1,2\n");
  list.write("labels.txt", "a\nunknown\nb\n");
  CHECK(message_of(list, {.identity_features = true})
            .starts_with("labels.txt:2: label 'unknown' is not allowed; it usually means"));
  data = io::load_text_folder(list.path(), {.identity_features = true, .missing_labels = Strings{"unknown"}});
  CHECK(data.labels == std::vector<std::int32_t>{0, -1, 1});
}

TEST_CASE("text folder: for prediction, labels may be missing") {
  const Folder folder("name,x\n a ,1\nb,2\n", "a,b\n");
  const Dataset data = io::load_text_folder(folder.path(), {}, DatasetUse::prediction);
  CHECK(data.labels.empty());
  CHECK(data.class_count == 0);
  CHECK(data.node_names == Strings{"a", "b"});
  CHECK(message_of(folder) == "nodes.csv: has no label column 'label'; TextOptions::label names another");
  CHECK(message_of(folder, {.label = "y"}, DatasetUse::prediction) ==
        "nodes.csv: has no label column 'y'; TextOptions::label names another");
}

TEST_CASE("text folder: matrices of edges and features, labels in a list") {
  test::TemporaryFolder folder;
  folder.write("edges.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n");
  folder.write("features.mtx", "%%MatrixMarket matrix array real general\n3 2\n1\n2\n3\n4\n5\n6\n");
  CHECK(dense(io::load_text_folder(folder.path(), {}, DatasetUse::prediction).features) ==
        std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(message_of(folder) == " has no labels; nodes.csv or labels.txt would hold them");
  const io::TextOptions two{.targets = {"price", "size"}};
  const auto unknown = [&] {
    const Dataset data = io::load_text_folder(folder.path(), two, DatasetUse::prediction);
    return data.target_names == two.targets && data.targets.size() == 6 &&
           std::all_of(data.targets.begin(), data.targets.end(), [](double y) { return std::isnan(y); });
  };
  CHECK(unknown());
  folder.write("labels.txt", "cat\ndog\n-1\n");
  CHECK(unknown());
  const Dataset data = io::load_text_folder(folder.path());
  CHECK(edges_of(data.graph) == std::vector<Edge>{{0, 1}, {1, 2}});
  CHECK(data.labels == std::vector<std::int32_t>{0, 1, -1});
  CHECK(data.class_names == Strings{"cat", "dog"});
  CHECK(data.node_names.empty());
  folder.write("labels.txt", "cat\ndog\n");
  CHECK(message_of(folder).starts_with("features.mtx: has 3 rows; "));
  folder.write("labels.txt", "cat\ndog,cat\n");
  CHECK(message_of(folder) == "labels.txt:2: has 2 fields; expected one label per line");
  folder.write("labels.txt", "cat\n\ndog\ncat\n");
  CHECK(message_of(folder) == "labels.txt:3: follows an empty line; node 1 needs a label, -1 where it is unknown");
  folder.write("labels.txt", "cat\ndog\ncat\n");
  folder.write("edges.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 1\n2 1\n");
  CHECK(message_of(folder) == "edges.mtx: has 4 rows; the dataset has 3 nodes");
  // Nodes without names are numbered.
  folder.write("edges.csv", "from,to\n0,2\n");
  CHECK(message_of(folder) == " has both edges.csv and edges.mtx; only one can be meant");
  std::filesystem::remove(folder / "edges.mtx");
  CHECK(edges_of(io::load_text_folder(folder.path()).graph) == std::vector<Edge>{{0, 2}});
  folder.write("edges.csv", "0,3\n");
  CHECK(message_of(folder).starts_with("edges.csv:1: '3' is not a node; the nodes of "));
  // A node table with names, and features beside it.
  std::filesystem::remove(folder / "labels.txt");
  folder.write("nodes.csv", "name,label\nx,1\ny,2\nz,1\n");
  folder.write("edges.csv", "z,x\n");
  CHECK(edges_of(io::load_text_folder(folder.path()).graph) == std::vector<Edge>{{0, 2}});
  folder.write("nodes.csv", "name,label,age\nx,1,3\ny,2,3\nz,1,3\n");
  CHECK(message_of(folder) ==
        "nodes.csv: has 1 feature columns, the first is 'age'; features.mtx holds features as "
        "well, only one can be meant");
}

TEST_CASE("text folder: bad nodes are named with line and column") {
  const std::string head = "name,label,x\n";
  const std::string advice =
      "; features are numbers: write a column of 0 and 1 for each text, or leave the column out "
      "(TextOptions::ignored_columns)";
  CHECK(message_of_nodes(head + "ada,a,1\n\nbob,b,inf\n") ==
        "nodes.csv:4: column 'x': 'inf' is not a finite number");
  CHECK(message_of_nodes(head + "ada,a,+-1\n") ==
        "nodes.csv:2: column 'x': '+-1' is not a finite number" + advice);
  CHECK(message_of_nodes(head + "ada,a,1e400\n") ==
        "nodes.csv:2: column 'x': '1e400' is not a finite number" + advice);
  CHECK(message_of_nodes(head + "ada,a,1e-400\nbob,b,1\neve,a,1\n\"c, d\",a,1\n") == "no error");
  CHECK(message_of_nodes(head + "ada,a,ten\n") ==
        "nodes.csv:2: column 'x': 'ten' is not a finite number" + advice);
  const std::string comma = "' is not a finite number; numbers have a decimal point, and no comma";
  CHECK(message_of_nodes("name;label;x\nada;a;-1,5\n") == "nodes.csv:2: column 'x': '-1,5" + comma);
  CHECK(message_of_nodes(head + "ada,a,\"1,170.5\"\n") == "nodes.csv:2: column 'x': '1,170.5" + comma);
  CHECK(message_of_nodes(head + "ada,a,\"no, 1\"\n") ==
        "nodes.csv:2: column 'x': 'no, 1' is not a finite number" + advice);
  CHECK(message_of_nodes("name,kind\nada,red\n") ==
        "nodes.csv:2: column 'kind': 'red' is not a finite number; no "
        "column is called 'label' (TextOptions::label names the column of the labels)");
  CHECK(message_of_nodes(head + "ada,a\n") == "nodes.csv:2: has 2 fields; the header has 3");
  CHECK(message_of_nodes(head + "ada,a,1\nada,b,1\n") == "nodes.csv:3: node 'ada' was already listed in line 2");
  CHECK(message_of_nodes(head + ",a,1\n") == "nodes.csv:2: the node has no name");
  CHECK(message_of_nodes(head) == "nodes.csv: lists no node; the graph is empty");
  CHECK(message_of_nodes("") == "nodes.csv: is empty; expected a header line and one line per node");
  CHECK(message_of_nodes("name,x,label,x\nada,1,a,1\n") == "nodes.csv:1: columns 2 and 4 are both called 'x'");
  CHECK(message_of_nodes("name,x,,label\nada,1,1,a\n") == "nodes.csv:1: column 3 has no name");
  // What other programs write for missing values is no class of its own.
  CHECK(message_of_nodes("name,x,label\nada,1,0\nbob,1,NA\neve,1,1\n")
            .starts_with(
                "nodes.csv:3: column 'label': label 'NA' is not allowed; it usually means a missing value"));
  std::string scores = "name,x,label\n";
  for (int k = 0; k < 30; ++k) scores += "n" + std::to_string(k) + ",1,0." + std::to_string(k + 100) + "\n";
  CHECK(message_of_nodes(scores).starts_with("nodes.csv: column 'label': 30 different numbers, of which 30 are "));
  CHECK(message_of_nodes("label,x\n1,2\n") ==
        "nodes.csv:1: column 'label' is the first column, which holds the names of the nodes");
  CHECK(message_of_nodes("name,label\nada,a\nbob,b\n").starts_with("nodes.csv: has no feature column"));
  CHECK(message_of_nodes(head + "ada,b,1\nbob,b,1\n\"c, d\",b,1\neve,b,1\n") ==
        " class_count: 1 is not allowed; at least two classes are needed");
  CHECK(message_of_nodes("name,x,label,split\nada,1,a,training\n") ==
        "nodes.csv:2: column 'split': 'training' is not a set of a split; expected train, validation (or val), "
        "test or "
        "nothing");
  CHECK(message_of_nodes("name,x,label,split\nada,1,a,test\nbob,1,a,val\n\"c, d\",1,b,\neve,1,b,test\n") ==
        "nodes.csv: column 'split' puts no node into the set 'train'; training needs one (random_splits() draws "
        "splits)");
}

TEST_CASE("text folder: bad edges are named with line and node") {
  CHECK(message_of_edges("source,target\nada,bob\nbob,zed\n").starts_with("edges.csv:3: node 'zed' is not in "));
  CHECK(message_of_edges("ada,zed\n").starts_with("edges.csv:1: node 'zed' is not in "));
  CHECK(message_of_edges("1,2\nada,bob\n").starts_with("edges.csv:1: node '1' is not in "));  // no header: numbers
  // Two unknown names are a mistake, not a header, which is recognised by its words.
  const std::string mistyped = message_of_edges("Ada,Bob\nada,bob\n");
  CHECK(mistyped.starts_with("edges.csv:1: node 'Ada' is not in "));
  CHECK(mistyped.ends_with(" (a header names its columns by two words such as source and target)"));
  for (const char* header : {"Source,Target",
                             "node_1,node_2",
                             "u,v",
                             "FROM,to",
                             "source_id,target ID",
                             "id1,id2",
                             "src,dst",
                             "who,whom",
                             "FromNodeId,ToNodeId",
                             "txId1,txId2",
                             "id_1,id_2",
                             "node1,node2",
                             "userA,userB",
                             "sender_id,receiver_id",
                             "citing_paper,cited_paper",
                             "source_airport,target_airport",
                             ":START_ID,:END_ID",
                             "V1,V2",
                             "node_id,node_id",
                             "paper,cites",
                             "user,friend",
                             "StartNode,EndNode",
                             "tx_id_0,tx_id_1"}) {
    INFO(header);
    check_small(io::load_text_folder(
        Folder(node_text, std::string(header) + edge_text.substr(edge_text.find('\n'))).path()));
  }
  CHECK(message_of_edges("source,targets\nada,bob\n").starts_with("edges.csv:1: node 'source' is not in "));
  for (const char* mistake : {"user7,user8", "user,user", "node,node", "node2,node1x", "p1,p2", "ada,source",
                              "source,bob", "source1,target2", "to1,to2", "x1,x2", "fromage,tomato", "sam,tam"}) {
    INFO(mistake);
    CHECK(message_of_edges(std::string(mistake) + "\nada,bob\n").starts_with("edges.csv:1: node '"));
  }
  CHECK(message_of_edges("ada,bob\nbob\n") == "edges.csv:2: has 1 fields; expected the names of two nodes");
  CHECK(message_of_edges("ada,bob\nbob,eve,2\n") ==
        "edges.csv:2: has 3 fields; expected the names of two nodes (edges have no weights or other attributes "
        "here: "
        "remove such columns)");
  CHECK(message_of_edges("ada,ada\n") == "edges.csv: the graph has no edge between different nodes");
  CHECK(message_of_edges("") == "edges.csv: the graph has no edge between different nodes");
  const Folder folder;
  folder.write("nodes.tsv", "name\tlabel\n");
  CHECK(message_of(folder) == " has both nodes.csv and nodes.tsv; only one can be meant");
  std::filesystem::remove(folder / "nodes.tsv");
  std::filesystem::remove(folder / "nodes.csv");
  CHECK(message_of(folder) ==
        " has edges, but neither nodes.csv (or .tsv) nor features.mtx; with "
        "TextOptions::identity_features an edge list is enough");
}

TEST_CASE("text folder: an edge list alone, with one-hot features") {
  const io::TextOptions options{.identity_features = true};
  const Folder folder;
  std::filesystem::remove(folder / "nodes.csv");
  const auto load = [&](const std::string& edges) {
    folder.write("edges.csv", edges);
    return io::load_text_folder(folder.path(), options, DatasetUse::prediction);
  };
  for (const std::string header : {"source,target\n", ""}) {
    const Dataset data = load(header + "zoe,ada\nbob,zoe\nada,zoe\nmax,max\n");
    CHECK(data.node_names == Strings{"zoe", "ada", "bob", "max"});
    CHECK(edges_of(data.graph) == std::vector<Edge>{{0, 1}, {0, 2}});
    CHECK(data.graph.dropped_self_loops() == 1);
    CHECK(data.graph.merged_duplicates() == 1);
    CHECK(dense(data.features) == dense(sheafnn::NodeFeatures::identity(4)));
    CHECK(data.labels.empty());
  }
  CHECK(load("10,2\n2,7\n").node_names == Strings{"10", "2", "7"});
  const auto message = [&](const std::string& edges, DatasetUse use = DatasetUse::prediction) {
    folder.write("edges.csv", edges);
    return message_of(folder, options, use);
  };
  CHECK(message("ada,\n").find("edges.csv:1: node '' is not in ") == 0);
  CHECK(message("node1,node2\nnode2,node3\n").find("edges.csv:1: node 'node1' is not in ") == 0);
  CHECK(message("ada,ada\n") == "edges.csv: the graph has no edge between different nodes");
  CHECK(message("ada,bob\n", DatasetUse::training) ==
        "edges.csv: has no label column 'label'; TextOptions::label names another");
  std::filesystem::remove(folder / "edges.csv");
  folder.write("edges.mtx", "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1\n");
  CHECK(message_of(folder, options).find(" has edges, but neither nodes.csv") == 0);
}

TEST_CASE("text folder: masks are no features") {
  for (const char* column :
       {"train_mask", "valMask",  "test_masks", "Split",     "split0",     "splits",    "fold",       "fold_3",
        "train",      "val",      "test",       "TRAIN",     "training",   "valid",     "validation", "is_train",
        "isTest",     "istrain",  "is_val",     "Is Valid",  "set",        "Subset",    "partition",  "cv_fold",
        "data_split", "testset",  "train_idx",  "val.index", "test nodes", "y_train",   "in_test_1",  "dev",
        "holdout",    "trainVal", "split_mask", "train1",    "train-flag", "TRAINMASK", "subset_id",  "kfold"}) {
    CAPTURE(column);
    CHECK(
        message_of_nodes(std::string("name,label,x,") + column + "\nada,a,1,1\n") ==
        std::string("nodes.csv:1: column '") + column +
            "' looks like a part of a split, not like a feature; a column called split (or split_0, split_1, ...) "
            "holds train, validation or test");
  }
  for (const std::string column :
       {"test_score", "training_hours", "std_dev", "max_val", "fold_change", "settings", "latest", "invalid",
        "manifold", "value", "id", "community_idx", "asset", "\u00e4test"}) {
    CAPTURE(column);
    CHECK(message_of_nodes("name,label,x," + column + "\nada,a,1,1\nbob,b,2,1\neve,a,2,1\n\"c, d\",a,2,1\n") ==
          "no error");
  }
  CHECK(
      message_of_nodes("id,label,x,train,val,test\nada,a,1,1,0,0\n").starts_with("nodes.csv:1: column 'train' "));
  // The first column is the name of a node, whatever it is called, and the column of the labels holds labels.
  CHECK(message_of_nodes("train_id,label,x\nada,a,1\nbob,b,2\neve,a,2\n\"c, d\",a,2\n") == "no error");
}

TEST_CASE("edge lists: names of columns that could be nodes") {
  const auto message = [](const std::string& nodes, const std::string& edges) {
    std::string table = "name,label,x\n";
    int k = 0;
    const Strings names = records(nodes, ' ').front();
    for (const std::string& line : names) table += line + (++k % 2 == 0 ? ",a,1\n" : ",b,1\n");
    return message_of(Folder(table, edges));
  };
  const auto both = [](const std::string& a, const std::string& b) {
    return "edges.csv:1: '" + a + "' and '" + b + "' are either the names of columns or two nodes that ";
  };
  CHECK(message("user0 user3 user4", "user1,user2\nuser0,user3\n").starts_with(both("user1", "user2")));
  CHECK(message("User-0 x", "user1,user2\nx,User-0\n").starts_with(both("user1", "user2")));
  CHECK(message("node_c node_d", "node_a,node_b\nnode_c,node_d\n").starts_with(both("node_a", "node_b")));
  CHECK(message("c d e", "a,b\nc,d\n").starts_with(both("a", "b")));
  CHECK(message("a b c", "u,v\na,b\n").starts_with(both("u", "v")));
  CHECK(message("n1 n2 n5", "node1,node2\nn1,n2\n") == "no error");
  CHECK(message("user0 user3", "source,target\nuser0,user3\n") == "no error");
  CHECK(message("u v w", "u,v\nv,w\n") == "no error");  // nodes, and an edge
  CHECK(message("1 2 3", "u,v\n1,2\n") == "no error");
  CHECK(message("1 2 3", "V1,V2\n1,2\n") == "no error");
  CHECK(message("node1 node2", "n1,n2\nnode1,node2\n").starts_with("edges.csv:1: node 'n1' is not in "));
  CHECK(message("user0 user3", "user7,user8\nuser0,user3\n").starts_with("edges.csv:1: node 'user7' is not in "));
  CHECK(message("0 1 2", "node1,node2\n0,1\n") == "no error");
  CHECK(message("third fourth", "first,second\nthird,fourth\n").starts_with(both("first", "second")));
  CHECK(message("Third x", "second,first\nThird,x\n").starts_with(both("first", "second")));
  CHECK(message("node-three x", "node_one,node_two\nnode-three,x\n").starts_with(both("node_one", "node_two")));
  CHECK(message("three four", "one,two\nthree,four\n").starts_with(both("one", "two")));
  CHECK(message("top middle", "left,right\ntop,middle\n").starts_with(both("left", "right")));
  CHECK(message("first second third", "first,second\nsecond,third\n") == "no error");  // nodes, and an edge
  CHECK(message("ada bob", "first,second\nada,bob\n") == "no error");
  CHECK(message("three four", "left,right\nthree,four\n") == "no error");
}

TEST_CASE("edge lists: comments and fields between blanks") {
  for (const std::string text :
       {"# Directed graph\n# \"Nodes\": 4, Edges; 3\n# FromNodeId\tToNodeId\nada\tbob\nbob\tada\nbob\tc, "
        "d\neve\teve\nbob\teve\n",
        "% sym unweighted\n ada   bob \r\nbob ada\r\n\r\n  % more\r\nbob \"c, d\"\r\neve\teve\r\n\t\nbob  eve",
        "source target\nada bob {}\nbob ada {}\nbob \"c, d\" {}\neve eve {}\nbob eve {}\n",
        "\xEF\xBB\xBFsep=;\r\nSource;Target\r\nada;bob\r\nbob;ada\r\nbob;c, d\r\neve;eve\r\nbob;eve\r\n",
        "\"sep=|\"\nada|bob\nbob|ada\nbob|c, d\neve|eve\nbob|eve\n"}) {
    INFO(text);
    for (const char* name : {"edges.txt", "edges.edgelist", "edges.csv"}) {
      const Folder folder;
      std::filesystem::remove(folder / "edges.csv");
      folder.write(name, text);
      if (text.starts_with("source target")) {  // one field too many
        CHECK(message_of(folder) == std::string(name) +
                                        ":2: has 3 fields; expected the names of two nodes (edges have "
                                        "no weights or other attributes here: remove such columns)");
      } else {
        check_small(io::load_text_folder(folder.path()));
      }
    }
  }
  // Nodes may have such names.
  const Folder folder("name,label,x\n#1,a,1\n%,b,2\nc c,a,3\n", "#1,%\n%,c c\n");
  CHECK(edges_of(io::load_text_folder(folder.path()).graph) == std::vector<Edge>{{0, 1}, {1, 2}});
  folder.write("edges.csv", "# none\n#1,%\n");
  CHECK(message_of(folder).starts_with("edges.csv:1: node '#' is not in "));
  folder.write("edges.csv", "#1 %\n% c c\n");
  CHECK(message_of(folder).starts_with("edges.csv:2: has 3 fields; "));
}

TEST_CASE("edge lists: columns of other programs") {
  const auto with = [](const std::string& edges) {
    check_small(io::load_text_folder(Folder(node_text, edges).path()));
  };
  with(
      "Source,Target,Type,Id,Label,timeset,Weight\nada,bob,Directed,0,,,1\nbob,ada,Undirected,1,x,,1.0\n"
      "bob,\"c, d\",Directed,2,,,1\neve,eve,Directed,3,y,,01\nbob,eve,Directed,4,,,1\n");
  with(",from,to\n0,ada,bob\n1,bob,ada\n2,bob,\"c, d\"\n3,eve,eve\n4,bob,eve\n");
  with("Unnamed: 0,to,from\n0,bob,ada\n1,ada,bob\n2,\"c, d\",bob\n3,eve,eve\n4,eve,bob\n");
  with("source,target,,\nada,bob,,\nbob,ada,,\nbob,\"c, d\"\neve,eve,,\nbob,eve,,\n");
  with("ada,bob,\nbob,ada,\nbob,\"c, d\",\neve,eve,\nbob,eve,\n");
  with("ada;bob;1\nbob;ada;1\nbob;c, d;1\neve;eve;1\nbob;eve;1\n");
  with("source,target,weight,kind\nada,bob,2,x\nbob,ada,2,x\nbob,\"c, d\",2.0,x\neve,eve,2,x\nbob,eve,2,x\n");
  CHECK(
      message_of_edges("source,target,Weight\nada,bob,1\nbob,eve,0.5\n") ==
      "edges.csv:3: column 'Weight' is '0.5', and '1' in line 2; edges have no weights or other attributes here: "
      "remove the column (TextOptions::ignored_edge_columns), or learn it (TextOptions::edge_labels or "
      "edge_target)");
  CHECK(message_of_edges("ada,bob,1\nbob,eve,2\n") ==
        "edges.csv:2: column 3 is '2', and '1' in line 1; edges have no weights or other attributes here: remove "
        "the column, or learn it (TextOptions::edge_labels or edge_target)");
  CHECK(message_of_edges("source,target,type\nada,bob,likes\nbob,eve,hates\n")
            .starts_with("edges.csv:3: column 'type'"));
  CHECK(message_of_edges("source,target,w\nada,bob,1\nbob,eve\n") ==
        "edges.csv:3: has 2 fields; expected 3, as in the lines before");
  CHECK(message_of_edges("id,from,to,start,end\n1,ada,bob,0,0\n") ==
        "edges.csv:1: 'from', 'to', 'start' and 'end' could all be the ends of edges");
  CHECK(message_of_edges("source,target,\nada,bob,1\n")
            .starts_with("edges.csv:2: has 3 fields; expected the names of "));
  // Commas behind every line of the node table.
  Folder folder("name,label,x,,\nada,a,1,,\nbob,b,2,,\neve,a,3\n\"c, d\",a,4,,\n");
  CHECK(io::load_text_folder(folder.path()).feature_count() == 1);
  folder.write("nodes.csv", "sep=;\nname;label;x\nada;a;1;\nbob;b;2;\neve;a;3;\nc, d;a;4\n");
  CHECK(io::load_text_folder(folder.path()).feature_count() == 1);
  folder.write("nodes.csv", "name,label,x,\nada,a,1,5\n");
  CHECK(message_of(folder) == "nodes.csv:2: has 4 fields; the header has 3 (column 4 has no name)");
}

TEST_CASE("text folder: types of edges and nodes") {
  const std::string nodes =
      "name,type,label,split,age\nada,person,0,train,1\nbob,robot,1,val,2\neve,person,1,test,3\n";
  const std::string edges = "source,type,target\nada,likes,bob\neve,fears,bob\nbob,likes,ada\n";
  io::TextOptions both;
  both.edge_types = both.node_types = true;
  Dataset data = io::load_text_folder(Folder(nodes, edges).path(), both);
  CHECK(data.edge_type_names == Strings{"fears", "likes"});
  CHECK(data.node_type_names == Strings{"person", "robot"});
  const auto types = [](auto span) { return std::vector<std::int32_t>(span.begin(), span.end()); };
  CHECK(types(data.graph.edge_types()) == std::vector<std::int32_t>{1, 0});  // ada-bob, bob-eve
  CHECK(types(data.graph.node_types()) == std::vector<std::int32_t>{0, 1, 0});
  CHECK(data.feature_names == Strings{"age"});
  const Strings known = {"owns", "likes", "fears"}, people = {"robot", "person"};
  renumber_types(data, known, people);
  CHECK(types(data.graph.edge_types()) == std::vector<std::int32_t>{1, 2});
  CHECK(data.graph.edge_type_count() == 3);
  CHECK(types(data.graph.node_types()) == std::vector<std::int32_t>{1, 0, 1});
  CHECK_THROWS_WITH_AS(renumber_types(data, Strings{"likes", "owns"}, people),
                       doctest::Contains("edge type: fears is not allowed; the model knows likes, owns"),
                       std::invalid_argument);

  CHECK(
      message_of(Folder(nodes, edges)).starts_with("nodes.csv:2: column 'type': 'person' is not a finite number"));
  CHECK(message_of(Folder(nodes, edges + "ada,fears,bob\n"), both) ==
        "edges.csv:5: the edge has the type 'fears', and 'likes' in line 2");
  CHECK(message_of(Folder(nodes, edges + "ada,,eve\n"), both) == "edges.csv:5: the edge has no type");
  CHECK(message_of(Folder(nodes, "ada,bob\n"), both) ==
        "edges.csv: has no column 'type', which tells the types of edges");
  CHECK(message_of(Folder(node_text, edges), both).find("node") != std::string::npos);
  io::TextOptions of_edges;
  of_edges.edge_types = true;
  CHECK(message_of(Folder(nodes, edges), of_edges).starts_with("nodes.csv:2: column 'type'"));
  io::TextOptions of_nodes;
  of_nodes.node_types = true;
  CHECK(message_of(Folder(node_text), of_nodes) ==
        "nodes.csv: has no column 'type', which tells the types of nodes");
  CHECK(message_of(Folder(nodes, edges), of_nodes) ==
        "edges.csv:3: column 'type' is 'fears', and 'likes' in line 2; TextOptions::edge_types gives each type "
        "weights of the sheaf learner");
}

TEST_CASE("text folder: the column of types has any spelling in either table") {
  io::TextOptions both;
  both.edge_types = both.node_types = true;
  const auto types = [](auto span) { return std::vector<std::int32_t>(span.begin(), span.end()); };
  for (const std::string name : {"type", "Type", "TYPE", "_type", "type "}) {
    const Folder folder("name," + name + ",label,age\nada,person,0,1\nbob,robot,1,2\n",
                        "source," + name + ",target\nada,likes,bob\n");
    const Dataset data = io::load_text_folder(folder.path(), both, DatasetUse::own_splits);
    CHECK(data.node_type_names == Strings{"person", "robot"});
    CHECK(types(data.graph.node_types()) == std::vector<std::int32_t>{0, 1});
    CHECK(data.edge_type_names == Strings{"likes"});
    CHECK(data.feature_names == Strings{"age"});
    CHECK(message_of(folder).starts_with("nodes.csv:2: column '"));
  }
  const std::string nodes = "name,type,label,Type,age\nada,a,0,b,1\nbob,a,1,b,2\n";
  const std::string edges = "source,Type,target,type\nada,Directed,bob,likes\n";
  CHECK(message_of(Folder(nodes, edges), both) ==
        "nodes.csv:1: columns 'type' and 'Type' could both tell the types; only one can be meant");
  io::TextOptions of_edges;
  of_edges.edge_types = true;
  CHECK(message_of(Folder("name,label,age\nada,0,1\nbob,1,2\n", edges), of_edges) ==
        "edges.csv:1: columns 'Type' and 'type' could both tell the types; only one can be meant");
  CHECK(message_of(Folder("Type,label,age\nada,0,1\nbob,1,2\n", edges), both) ==
        "nodes.csv:1: column 'Type' is the first column, which holds the names of the nodes");
  // A column that is asked for by name is not the column of types.
  both.label = "Type";
  const Folder folder("name,type,Type,age\nada,a,b,1\nbob,a,c,2\n", "source,type,target\nada,likes,bob\n");
  const Dataset named = io::load_text_folder(folder.path(), both, DatasetUse::own_splits);
  CHECK(named.node_type_names == Strings{"a"});
  CHECK(named.class_names == Strings{"b", "c"});
  // Without --stalks and --edge-types, a column of numbers is a feature, and what Gephi writes is passed over.
  const Dataset plain = io::load_text_folder(Folder("name,label,Type\nada,0,1\nbob,1,2\n", edges).path(), {},
                                             DatasetUse::own_splits);
  CHECK(plain.feature_names == Strings{"Type"});
}

TEST_CASE("text folder: types of nodes as texts are no features, and the message says what to do") {
  const std::string advice =
      "; TextOptions::node_types reads the column as types of nodes; otherwise leave it out";
  for (const std::string name : {"type", "Type"}) {
    const std::string nodes = "name,label,age," + name + "\nada,0,1,\nbob,1,2,robot\n";
    CHECK(message_of(Folder(nodes, "ada,bob\n")) ==
          "nodes.csv:3: column '" + name + "': 'robot' is not a finite number" + advice);
    // Hypergraphs have no types.
    const test::TemporaryFolder folder;
    folder.write("hyperedges.csv", std::string("ada,bob\n"));
    folder.write("nodes.csv", nodes);
    CHECK_THROWS_WITH_AS(static_cast<void>(io::load_hypergraph(folder.path().string())),
                         doctest::Contains("'robot' is not a finite number"), std::runtime_error);
    try {
      static_cast<void>(io::load_hypergraph(folder.path().string()));
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find("node_types") == std::string::npos);
    }
  }
  CHECK(message_of_nodes("name,label,kind\nada,red,x\n") ==
        "nodes.csv:2: column 'kind': 'x' is not a finite number; features are numbers: write a column of 0 and 1 "
        "for each text, or leave the column out (TextOptions::ignored_columns)");
}

TEST_CASE("names of classes and columns in metadata") {
  const Dataset data =
      io::load_text_folder(Folder("name,label,\"a, b\",c\nada,x,1,2\nbob,\"y\"\"\",3,4\n", "ada,bob\n").path());
  std::map<std::string, std::string> metadata = io::names_of(data);
  CHECK(metadata.size() == 2);
  CHECK(io::saved_class_names("m", metadata, 2) == Strings{"x", "y\""});
  CHECK(io::saved_names("m", metadata, "feature_names") == Strings{"a, b", "c"});
  io::check_columns(data, "m", metadata);
  Dataset other = data;
  std::swap(other.feature_names[0], other.feature_names[1]);
  CHECK_THROWS_WITH_AS(io::check_columns(other, "m", metadata),
                       doctest::Contains("the same columns in another order"), std::invalid_argument);
  CHECK_THROWS_WITH_AS(static_cast<void>(io::saved_class_names("m", metadata, 3)),
                       "m: class_names has 2 names; there are 3 classes", std::runtime_error);
  metadata["class_names"] = "";
  CHECK_THROWS_WITH_AS(static_cast<void>(io::saved_class_names("m", metadata, 2)),
                       "m: class_names has 0 names; there are 2 classes", std::runtime_error);
  metadata["class_names"] = "\"x";
  CHECK_THROWS_AS(static_cast<void>(io::saved_class_names("m", metadata, 2)), std::runtime_error);
  // Data without names.
  CHECK(io::names_of(karate_club()).empty());
  CHECK(io::saved_class_names("m", {}, 2).empty());
  io::check_columns(data, "m", {});
}

TEST_CASE("text folder: columns that are not read") {
  const auto without = [](Strings columns) { return io::TextOptions{.ignored_columns = std::move(columns)}; };
  const std::string nodes =
      "name,joined on,label,age,is_test,type\nada,2024-05-01,red,1,no,person\nbob,,blue,2,yes,\n";
  const Folder folder(nodes, "ada,bob\n");
  CHECK(message_of(folder).starts_with("nodes.csv:1: column 'is_test' looks like a part of a split"));
  CHECK(message_of(folder, without({"is_test", "type"}))
            .starts_with("nodes.csv:2: column 'joined on': '2024-05-01'"));
  const Dataset data = io::load_text_folder(folder.path(), without({"type", "joined on", "is_test"}));
  CHECK(data.feature_names == Strings{"age"});
  CHECK(dense(data.features) == std::vector<double>{1, 2});
  CHECK(data.class_names == Strings{"blue", "red"});
  CHECK(data.node_names == Strings{"ada", "bob"});
  CHECK(data.splits.empty());
  // Whatever the column would have been.
  io::TextOptions typed = without({"joined on", "is_test", "type"});
  typed.node_types = true;
  CHECK(message_of(folder, typed) == "nodes.csv: has no column 'type', which tells the types of nodes");
  CHECK(message_of(Folder(), without({"label"})) ==
        "nodes.csv: has no label column 'label'; TextOptions::label names another");
  CHECK(io::load_text_folder(Folder().path(), without({"split"})).splits.empty());
  CHECK(
      message_of(Folder(), without({"Age"})) ==
      "nodes.csv:1: no column is called 'Age' (TextOptions::ignored_columns names the columns that are not read)");
  CHECK(message_of(Folder(), without({"name"})) ==
        "nodes.csv:1: column 'name' is the first column, which holds the names of the nodes");
  io::TextOptions learned = without({"joined on", "age", "is_test", "type"});
  learned.targets = {"age"};
  CHECK(message_of(folder, learned) ==
        "nodes.csv:1: column 'age' is a target, and is not read (TextOptions::ignored_columns)");
  // Of the edge list.
  const auto without_edge = [](Strings columns) {
    return io::TextOptions{.ignored_edge_columns = std::move(columns)};
  };
  const std::string dated =
      "since,source,type,target\n2020,ada,likes,bob\n2021,bob,owns,\"c, d\"\n2021,bob,owns,eve\n";
  const Folder edges(node_text, dated);
  CHECK(message_of(edges, without_edge({"type"})).starts_with("edges.csv:3: column 'since' is '2021'"));
  CHECK(edges_of(io::load_text_folder(edges.path(), without_edge({"type", "since"})).graph) ==
        std::vector<Edge>{{0, 1}, {1, 2}, {1, 3}});
  io::TextOptions both = without_edge({"since"});
  both.edge_types = true;
  CHECK(io::load_text_folder(edges.path(), both).edge_type_names == Strings{"likes", "owns"});
  CHECK(message_of(edges, without_edge({"Since"})) ==
        "edges.csv:1: no column is called 'Since' (TextOptions::ignored_edge_columns names the columns that are "
        "not read)");
  CHECK(message_of(edges, without_edge({"target"})) == "edges.csv:1: column 'target' holds the ends of the edges");
  CHECK(message_of(Folder(node_text, "ada,bob,3\n"), without_edge({"3"})) ==
        "edges.csv:1: no column is called '3' (TextOptions::ignored_edge_columns names the columns that are not "
        "read)");
  io::TextOptions unnamed = without({"age"});
  unnamed.identity_features = true;
  test::TemporaryFolder list;
  list.write("edges.csv", "ada,bob\n");
  CHECK(message_of(list, unnamed) ==
        " has no nodes.csv (or .tsv), and so no column 'age' (TextOptions::ignored_columns)");
}

TEST_CASE("messages name options in the words of the caller") {
  const Folder dated("name,label,born\nada,a,1815-12-10\n");
  const Folder weighted("name,label,x\nada,a,1\nbob,b,2\neve,a,3\n", "source,target,w\nada,bob,1\nbob,eve,2\n");
  const Folder unlabelled("name,x\nada,1\n");
  const auto check = [&](Caller caller, const char* columns, const char* edge_columns, const char* label) {
    set_caller(caller);
    CHECK(message_of(dated).ends_with(std::string("leave the column out (") + columns + ")"));
    CHECK(message_of(weighted).find(std::string("remove the column (") + edge_columns + "), or learn it") !=
          std::string::npos);
    CHECK(message_of(unlabelled) ==
          std::string("nodes.csv: has no label column 'label'; ") + label + " names another");
    if (caller != Caller::program) {
      for (const Folder* folder : {&dated, &weighted, &unlabelled}) {
        CHECK(message_of(*folder).find("--") == std::string::npos);
      }
    }
  };
  check(Caller::program, "--ignore-columns", "--ignore-edge-columns", "--label");
  check(Caller::python, "ignore_columns", "ignore_edge_columns", "label");
  check(Caller::cpp, "TextOptions::ignored_columns", "TextOptions::ignored_edge_columns", "TextOptions::label");
}

TEST_CASE("options of tables are refused for data without tables") {
  const auto message = [](const char* data, const io::TextOptions& options) {
    try {
      static_cast<void>(io::load_dataset(data, {}, DatasetUse::training, options));
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string karate = "karate: is no folder of tables, to which the option TextOptions::";
  CHECK(message("karate", {}).empty());
  CHECK(message("karate", {.ignored_columns = {"age"}}) == karate + "ignored_columns (age) belongs");
  CHECK(message("karate", {.ignored_edge_columns = {"w"}}) == karate + "ignored_edge_columns (w) belongs");
  CHECK(message("karate", {.label = "club"}) == karate + "label (club) belongs");
  CHECK(message("karate", {.identity_features = true}) == karate + "identity_features (on) belongs");
}

TEST_CASE("pairs of nodes: columns that differ are refused without options of graphs") {
  const std::vector<std::string> names = {"ada", "bob", "eve"};
  const io::detail::NodeNumbers nodes("nodes.csv", names);
  const auto pairs = [&](const std::string& text) {
    return io::detail::EdgeListReader(io::CsvReader("pairs.csv", {text.begin(), text.end()}, ','), nodes)
        .read_pairs();
  };
  CHECK(pairs("source,target\nada,bob\nbob,eve\n") == std::vector<Edge>{{0, 1}, {1, 2}});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(pairs("source,target,w\nada,bob,1\nbob,eve,2\n")),
      "pairs.csv:3: column 'w' is '2', and '1' in line 2; pairs have no attributes: remove the column",
      std::runtime_error);
  CHECK_THROWS_WITH_AS(static_cast<void>(pairs("ada,ada\n")), "pairs.csv: has no pair of two different nodes",
                       std::runtime_error);
}

TEST_CASE("text folder: carriage returns inside lines, and names in messages") {
  CHECK(error_of("a,b\rc,d\r") ==
        "t.csv:1: has a carriage return that ends no line. Save the file with the line ends of Unix or "
        "Windows");
  CHECK(records("a,\"b\rc\"\r\n") == std::vector<Strings>{{"a", "b\rc"}});
  CHECK(message_of_nodes("name,label,x\rada,a,1\r")
            .starts_with("nodes.csv:1: has a carriage return that ends no line"));
  CHECK(
      message_of_edges("ada,bob\rbob,eve\r").starts_with("edges.csv:1: has a carriage return that ends no line"));
  CHECK(message_of_edges("ada,Jos\xC3\xA9\n").starts_with("edges.csv:1: node 'Jos\xC3\xA9' is not in "));
}

TEST_CASE("text folder: a folder with neither kind of files is refused") {
  const test::TemporaryFolder folder;
  folder.write("edge.csv", edge_text);
  const std::string message =
      folder.path().string() +
      ": has neither edges.csv (.tsv, .txt, .edgelist, .mtx) nor the files of a Geom-GCN or OGB folder";
  CHECK_THROWS_WITH_AS(static_cast<void>(io::load_dataset(folder.path().string())), message.c_str(),
                       std::runtime_error);
}

TEST_CASE("text folder: labels and numbers of edges") {
  const test::TemporaryFolder folder;
  folder.write("nodes.csv", "name,x\na,1\nb,2\nc,3\nd,4\n");
  const auto load = [&](const std::string& edges, const io::TextOptions& options) {
    folder.write("edges.csv", edges);
    return io::load_dataset(folder.path().string(), {}, sheafnn::DatasetUse::prediction, options);
  };
  const io::TextOptions signs = {.edge_labels = "sign"}, hours = {.edge_target = "hours"};
  // Edges are sorted, listed in both directions, and one is a self-loop; 1, +1 and 1.0 are one label, and -1 is one.
  const sheafnn::Dataset data = load("sign,source,target\n-1,d,c\n+1,b,a\n,c,a\n1.0,a,b\n,c,d\n7,a,a\n", signs);
  CHECK(data.graph.edge_count() == 3);  // ab, ac, cd
  CHECK(data.edge_labels == std::vector<std::int32_t>{1, -1, 0});
  CHECK(data.edge_class_names == std::vector<std::string>{"-1", "+1", "7"});
  CHECK(data.edge_targets.empty());
  const sheafnn::Dataset numbers = load("source,target,hours\nc,d,2.5\na,b,\na,c,NA\nb,a,-1\n", hours);
  CHECK(numbers.edge_labels.empty());
  REQUIRE(numbers.edge_targets.size() == 3);
  CHECK(numbers.edge_targets[0] == -1);
  CHECK(std::isnan(numbers.edge_targets[1]));
  CHECK(numbers.edge_targets[2] == 2.5);
  const sheafnn::Dataset typed =
      load("source,target,type,sign\na,b,x,+\nc,d,y,-\n",
           {.missing_labels = std::vector<std::string>{"none"}, .edge_types = true, .edge_labels = "sign"});
  CHECK(typed.edge_type_names == std::vector<std::string>{"x", "y"});
  CHECK(typed.edge_labels == std::vector<std::int32_t>{0, 1});
  CHECK(load("source,target\na,b\n", signs).edge_labels.empty());
  const auto refused = [&](const std::string& edges, const io::TextOptions& options, const std::string& text) {
    CHECK_THROWS_WITH_AS(static_cast<void>(load(edges, options)), doctest::Contains(text.c_str()),
                         std::runtime_error);
  };
  refused("source,target,sign\na,b,1\nb,a,2\n", signs,
          "edges.csv:3: column 'sign' is '2', and '1' in line 2, which is the same edge");
  refused("source,target,hours\na,b,1\nb,a,2\n", hours, "edges.csv:3: column 'hours' is '2', and '1' in line 2");
  refused("source,target,hours\na,b,1\nb,c,long\n", hours,
          "edges.csv:3: column 'hours': 'long' is not a finite number");
  refused("source,target,sign,sign\na,b,1,2\n", signs, "edges.csv:1: has two columns 'sign'");
  refused("source,target,sign\na,b,1\nb,c,NA\n", signs, "edges.csv:3: column 'sign': label 'NA' is not allowed");
  refused("source,target,weight\na,b,1\nb,c,2\n", signs,
          "column 'weight' is '2', and '1' in line 2; there is no column 'sign'");
  refused("source,target,weight,sign\na,b,1,1\nb,c,2,2\n", signs,
          "edges have no weights or other attributes here");
  refused("source,target,sign\na,b,1\n", {.edge_labels = "sign", .edge_target = "sign"},
          "edge_target: sign is not allowed; edges have labels or numbers, not both");
}

TEST_CASE("text folder: files cut anywhere or with a changed byte load or are refused") {
  std::minstd_rand random(7);
  int loaded = 0, refused = 0;
  const auto attempt = [&](const std::string& edges, const std::string& nodes) {
    try {
      const io::NodeTable table = io::read_node_table(reader(nodes));
      const Graph graph = io::detail::read_edge_list(reader(edges), {"t.csv", table.names});
      CHECK(graph.node_count() == table.features.rows());
      CHECK(table.names.size() == table.labels.size());
      ++loaded;
    } catch (const std::runtime_error& error) {
      CHECK(std::string(error.what()).find('\n') == std::string::npos);
      ++refused;
    }
  };
  const auto both = [&](std::string edges, std::string nodes, std::size_t i, char c) {
    edges[i % edges.size()] = c;
    nodes[i % nodes.size()] = c;
    attempt(edges, node_text);
    attempt(edge_text, nodes);
  };
  for (std::size_t size = 0; size < edge_text.size(); ++size) attempt(edge_text.substr(0, size), node_text);
  for (std::size_t size = 0; size < node_text.size(); ++size) attempt(edge_text, node_text.substr(0, size));
  for (int k = 0; k < 400; ++k) both(edge_text, node_text, random(), static_cast<char>(random() % 256));
  CHECK(loaded > 50);
  CHECK(refused > 100);
}

TEST_CASE("text folder: columns of targets") {
  const Folder folder("name,height,label,price,visits\na,1,x,2.5,3\nb,2,y,,4\nc,3,x,NA,-1\n", "a,b\nb,c\n");
  io::TextOptions options{.targets = {"visits", "price"}};
  const Dataset data = io::load_text_folder(folder.path(), options, DatasetUse::own_splits);
  CHECK(data.target_names == Strings{"visits", "price"});
  CHECK(data.labels.empty());
  CHECK(data.class_count == 0);
  CHECK(data.feature_names == Strings{"height"});  // the column of labels is no feature
  REQUIRE(data.targets.size() == 6);
  CHECK(data.targets[0] == 3);
  CHECK(data.targets[1] == 2.5);
  CHECK(data.targets[2] == 4);
  CHECK(std::isnan(data.targets[3]));
  CHECK(data.targets[4] == -1);
  CHECK(std::isnan(data.targets[5]));
  // Splits are of the nodes with a known target.
  CHECK(known_targets(data) == std::vector<std::int32_t>{0, 0, 0});
  const std::vector<std::string> price = {"price"};
  const Dataset prices = io::load_text_folder(folder.path(), {.targets = price}, DatasetUse::own_splits);
  CHECK(known_targets(prices) == std::vector<std::int32_t>{0, -1, -1});
  for (const Split& split : random_splits(prices, {.train = 1, .validation = 0, .test = 0, .count = 3})) {
    CHECK(split.train == std::vector<std::int32_t>{0});
    CHECK(split.validation.empty());
    CHECK(split.test.empty());
  }
  // Columns that are not there: unknown in a prediction.
  options.targets = {"price", "weight"};
  CHECK_THROWS_WITH(static_cast<void>(io::load_text_folder(folder.path(), options, DatasetUse::own_splits)),
                    doctest::Contains("nodes.csv:1: no column is called 'weight'"));
  const Dataset unknown = io::load_text_folder(folder.path(), options, DatasetUse::prediction);
  CHECK(unknown.targets[0] == 2.5);
  CHECK(std::isnan(unknown.targets[1]));
  options.missing_labels = Strings{"-1"};
  options.targets = {"visits"};
  CHECK(std::isnan(io::load_text_folder(folder.path(), options, DatasetUse::own_splits).targets[2]));
}

TEST_CASE("classes are renumbered by the names of a model") {
  Dataset data = io::load_text_folder(Folder().path());
  const Strings names = {"green", "red"};
  renumber_classes(data, names);
  CHECK(data.labels == std::vector<std::int32_t>{1, -1, -1, 1, -1});  // blue is not one of them
  CHECK(data.class_names == names);
  CHECK_NOTHROW(validate(data));
  renumber_classes(data, {});
  CHECK(data.class_names == names);
  data.class_names.clear();
  renumber_classes(data, Strings{"a", "b", "c"});
  CHECK(data.labels == std::vector<std::int32_t>{1, -1, -1, 1, -1});
  Dataset numbers = data;  // names of one number are one name
  numbers.labels = {0, 1, -1, 1, 0};
  numbers.class_names = {"1.0", "07"};
  renumber_classes(numbers, Strings{"3", "7", "1"});
  CHECK(numbers.labels == std::vector<std::int32_t>{2, 1, -1, 1, 2});
  data.class_names = {"a"};
  data.name = "toy";
  CHECK_THROWS_WITH_AS(validate(data),
                       "toy: class_names: 1 is not allowed; must be empty, or one name for each of the 2",
                       std::invalid_argument);
  data.class_names.clear();
  data.node_names.pop_back();
  CHECK_THROWS_WITH_AS(validate(data),
                       "toy: node_names: 4 is not allowed; must be empty, or one name for each of the 5",
                       std::invalid_argument);
}

}  // namespace test_csv
