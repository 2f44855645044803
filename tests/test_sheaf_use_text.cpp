/// \file
/// Figures of a learned sheaf as text: what is written is read, what is missing is unknown, what is wrong is named; in
/// checkpoints of models with them, without them, and with more than is known.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "models/sheaf_figures.hpp"
#include "shared_networks.hpp"
#include "sheafnn/io/checkpoint.hpp"
#include "sheafnn/io/sheaf_use_text.hpp"
#include "temporary_folder.hpp"
#include "tiny_task.hpp"

namespace test_sheaf_use_text {
namespace {

namespace io = sheafnn::io;
using sheafnn::SheafUse;
using Model = sheafnn::Bsnn<sheafnn::SpecialOrthogonal<2>>;

/// Every figure another number.
SheafUse some_figures() {
  SheafUse use;
  use.bayesian = true;
  use.kl = 0.1;
  use.spread = {{"kappa", {0.2, 1.0 / 3, 0.4, 1e-17}}, {"sigma", {1, 2, 3, 4}}};
  use.turn = {5, 6, 7.25, 8};
  use.nodes = 12;
  use.loss = 0.5;
  use.accuracy = 0.75;
  use.permuted = {1.5, 1.0, 0.125, 0.375};
  use.prior = {2.5, 2.0, 0.25};
  use.identity = {0.625, 0.125, 0.0625};
  return use;
}
std::string refusal(const std::string& text) {
  try {
    static_cast<void>(io::parse_sheaf_use("a file", text));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "nothing was thrown";
}
std::string content_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("figures of a sheaf come back from their text bit by bit") {
  const SheafUse use = some_figures();
  const std::string text = io::to_text(use);
  const SheafUse same = io::parse_sheaf_use("a file", text);
  CHECK(io::to_text(same) == text);
  CHECK(same.bayesian);
  CHECK(!same.of_nodes);
  CHECK(same.kl == use.kl);
  REQUIRE(same.spread.size() == 2);
  CHECK(same.spread[0].name == "kappa");
  CHECK(same.spread[0].values.median == use.spread[0].values.median);
  CHECK(same.spread[0].values.deviation == use.spread[0].values.deviation);
  CHECK(same.spread[1].values.high == 3);
  CHECK(same.turn.low == 5);
  CHECK(same.turn.high == 7.25);
  CHECK(std::isnan(same.negative));
  CHECK(same.nodes == 12);
  CHECK(same.loss == 0.5);
  CHECK(same.accuracy == 0.75);
  CHECK(same.permuted.accuracy == 0.375);
  CHECK(same.permuted.standard_error == 0.125);
  CHECK(same.prior.loss == 2.5);
  CHECK(same.identity.rise == 0.125);
  CHECK(sheafnn::warning(same) == sheafnn::warning(use));
  // Names that are not ASCII as well: .npz files take nothing else.
  SheafUse other = use;
  other.spread[0].name = "κ";
  CHECK(io::to_text(other).find("\\u03ba") != std::string::npos);
  CHECK(io::parse_sheaf_use("a file", io::to_text(other)).spread[0].name == "κ");
}

TEST_CASE("texts of figures: what is missing is unknown, more is passed over, wrong types are named") {
  const SheafUse none = io::parse_sheaf_use("a file", "{}");
  CHECK(!sheafnn::has_figures(none));
  CHECK(std::isnan(none.permuted.rise));
  const SheafUse some =
      io::parse_sheaf_use("a file", R"({"loss": null, "later": [1, {}], "turn_degrees": {"50%": 3, "99%": 4}})");
  CHECK(std::isnan(some.loss));
  CHECK(some.turn.median == 3);
  CHECK(std::isnan(some.turn.low));
  CHECK(sheafnn::has_figures(some));
  CHECK(refusal("") == "a file: sheaf_use must be a JSON object");
  CHECK(refusal("[1]") == "a file: sheaf_use must be a JSON object");
  CHECK(refusal("{\"loss\": 1e999}") == "a file: sheaf_use must be a JSON object");
  CHECK(refusal("{\"loss\": \"1\"}") == "a file: sheaf_use: 'loss' must be a number or null");
  CHECK(refusal("{\"bayesian\": 1}") == "a file: sheaf_use: 'bayesian' must be true or false");
  CHECK(refusal("{\"nodes\": -1}") == "a file: sheaf_use: 'nodes' must be a whole number");
  CHECK(refusal("{\"nodes\": 1.5}") == "a file: sheaf_use: 'nodes' must be a whole number");
  CHECK(refusal("{\"nodes\": 18446744073709551615}") == "a file: sheaf_use: 'nodes' must be a whole number");
  CHECK(refusal("{\"spread\": 1}") == "a file: sheaf_use: 'spread' must be an object");
  CHECK(refusal("{\"spread\": {\"kappa\": {\"5%\": true}}}") ==
        "a file: sheaf_use: '5%' must be a number or null");
  CHECK(refusal("{\"prior\": []}") == "a file: sheaf_use: 'prior' must be an object");
}

TEST_CASE("checkpoints carry figures, and load without them") {
  const test::TemporaryFolder folder;
  Model model(tiny::options(), 3);
  io::save_checkpoint(folder / "plain", model);
  CHECK(!io::saved_sheaf_use("plain", io::read_checkpoint_info(folder / "plain").metadata));
  const std::map<std::string, std::string> notes = {{io::sheaf_use_key, io::to_text(some_figures())}};
  io::save_checkpoint(folder / "once", model, notes);
  io::save_checkpoint(folder / "twice", model, notes);
  CHECK(content_of(folder / "once") == content_of(folder / "twice"));
  const auto saved = io::saved_sheaf_use("once", io::read_checkpoint_info(folder / "once").metadata);
  REQUIRE(saved);
  CHECK(io::to_text(*saved) == io::to_text(some_figures()));
  // The same model, whatever stands there; a reader that does not ask does not care.
  io::save_checkpoint(folder / "damaged", model, {{io::sheaf_use_key, "?"}});
  for (const char* name : {"plain", "once", "damaged"}) {
    const Model loaded = io::load_checkpoint<Model>(folder / name);
    const auto &values = loaded.parameters().values(), &expected = model.parameters().values();
    CHECK(std::equal(values.begin(), values.end(), expected.begin(), expected.end()));
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(
                           io::saved_sheaf_use("damaged", io::read_checkpoint_info(folder / "damaged").metadata)),
                       "damaged: sheaf_use must be a JSON object", std::runtime_error);
}

TEST_CASE("figures as lines: one training, medians of several, lines of at most 100 characters") {
  SheafUse use = some_figures();
  CHECK(programs::figure_lines(use) ==
        "sheaf: KL per pair 0.1, kappa 0.200/0.333/0.400, sigma 1.000/2.000/3.000,\n"
        "  angle 5.0/6.0/7.2 deg (at 5/50/95%)\n"
        "  validation loss 0.500, maps permuted +1.000, drawn from the prior +2.000, identity +0.125\n");
  CHECK(programs::figure_lines(SheafUse{}).empty());
  SheafUse scored;
  scored.nodes = 3;
  scored.loss = 1;
  scored.permuted.rise = -0.25;
  CHECK(programs::figure_lines(scored, " in training") ==
        "sheaf in training: validation loss 1.000, maps permuted -0.250, drawn from the prior -, identity -\n");
  std::vector<SheafUse> three(3, use);
  three[0].kl = 7;
  three[1].kl = 0.3;
  three[2].kl = SheafUse::unknown;
  three[1].spread[0].values.low = 0.9;
  three[2].permuted.rise = 9;
  three[0].turn.median = 8;
  const SheafUse median = programs::median_of(three);
  CHECK(median.kl == (7 + 0.3) / 2);
  CHECK(median.spread[0].values.low == 0.2);
  CHECK(median.turn.median == 6);
  CHECK(median.permuted.rise == 1);
  three[1].permuted.rise = 4;
  CHECK(programs::median_of(three).permuted.rise == 4);
  CHECK(programs::wrapped(programs::words_of("ab cd"), "x") == "xab cd");
  const std::string a(60, 'a'), b(39, 'b');
  CHECK(programs::wrapped({a, b, "c"}, "", 2) == a + " " + b + "\n  c");
  CHECK(programs::wrapped({a, b, "c"}, "x", 2) == "x" + a + "\n  " + b + " c");
}

}  // namespace test_sheaf_use_text
