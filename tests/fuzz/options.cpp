/// \file
/// Fuzz target: the command line of the program train, an argument per line, and what the library makes of its options.
#include <CLI/CLI.hpp>
#include <optional>

#include "contract.hpp"
#include "models/program.hpp"
#include "models/train_settings.hpp"
#include "sheafnn/sheaf/families.hpp"

namespace {

using programs::TrainSettings;

std::vector<std::string> arguments_of(fuzz::Input input) {
  std::vector<std::string> r;
  std::string argument;
  for (const std::uint8_t c : input) {
    if (c == '\n') {
      r.push_back(std::move(argument));
      argument.clear();
    } else if (c >= ' ') {  // a shell passes other characters on; messages show them unchanged
      argument += static_cast<char>(c);
    }
  }
  if (!argument.empty()) r.push_back(std::move(argument));
  return r;
}
template <class Family>
void resolve(const TrainSettings& s, bool bayesian) {
  fuzz::keeps_contract<std::invalid_argument>([&] {
    sheafnn::ModelOptions options = s.pairs();
    options.features = 3;
    options.classes = 2;
    options = sheafnn::resolve<Family>(options, bayesian);
    const bool sizes = options.channels >= 1 && options.channels <= 1024 && options.layers >= 1 &&
                       options.layers <= 64 && options.learner_layers >= 0 && options.learner_layers <= 8 &&
                       options.readout_layers >= 1 && options.readout_layers <= 8;
    fuzz::expect(sizes, "options: a size out of range is accepted");
    fuzz::expect(options.edge_weights && options.separate_encoder, "options: a default is not filled in");
  });
}

}  // namespace

SHEAFNN_FUZZ_TARGET(options, 4096, 1 << 22) {
  // The program has one parse for each set of options; to make them takes a hundred times as long as to parse. CLI11 keeps
  // the order of the options of all parses.
  static TrainSettings s;
  static std::optional<CLI::App> made;
  static int parses = 0;
  if (parses++ % 1000 == 0) programs::add_options(made.emplace("", "train"), s);
  CLI::App& app = *made;
  s = TrainSettings();
  const bool parsed = fuzz::keeps_contract<CLI::ParseError, std::invalid_argument, std::runtime_error>([&] {
    try {
      std::vector<std::string> arguments = arguments_of(input);
      programs::refuse_empty_arguments(arguments);
      std::reverse(arguments.begin(), arguments.end());  // as CLI11 wants them
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() != 0) throw;
      static_cast<void>(app.help());
    }
    programs::resolve_options(app, s);
    fuzz::expect(s.train.learning_rate > 0 && std::isfinite(s.train.learning_rate) && s.train.dropout >= 0 &&
                     s.train.dropout < 1 && s.train.epochs >= 1,
                 "options: a training option out of range is accepted");
  });
  if (!parsed) return;
  fuzz::keeps_contract<std::invalid_argument>([&] {
    const auto numbers = programs::parse_numbers("--splits", s.splits, 10, {0});
    for (const std::size_t number : numbers) fuzz::expect(number < 10, "options: a split out of range");
  });
  fuzz::keeps_contract<std::invalid_argument>(
      [&] { static_cast<void>(programs::parse_numbers("--seeds", s.seeds, 1000000, {0})); });
  fuzz::keeps_contract<std::invalid_argument>([&] {
    programs::parse_shares(s.data.make_splits, s.data.splits);
    fuzz::expect(std::abs(s.data.splits.train + s.data.splits.validation + s.data.splits.test - 1) < 1e-6,
                 "options: shares that are no whole");
  });
  fuzz::keeps_contract<std::invalid_argument>([&] { sheafnn::validate(s.synthetic); });
  fuzz::keeps_contract<std::invalid_argument>([&] { sheafnn::validate(s.data.planted.options, 3); });
  for (const bool bayesian : {false, true}) {
    resolve<sheafnn::Diagonal<2>>(s, bayesian);
    resolve<sheafnn::SpecialOrthogonal<4>>(s, bayesian);
    resolve<sheafnn::GeneralLinear<3>>(s, bayesian);
    fuzz::keeps_contract<std::invalid_argument>([&] {
      sheafnn::CooperativeOptions options = s.cooperative();
      options.features = 3;
      options.classes = 2;
      static_cast<void>(sheafnn::resolve(options, 2, bayesian));
    });
    fuzz::keeps_contract<std::invalid_argument>([&] {
      sheafnn::FlowOptions options = s.flow();
      options.features = 3;
      options.classes = 2;
      static_cast<void>(sheafnn::resolve<sheafnn::Diagonal<2>>(options, bayesian));
    });
  }
  static_cast<void>(programs::decisive_settings(s, "data"));
}
