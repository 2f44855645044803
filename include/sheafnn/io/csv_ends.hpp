/// \file
/// Headers of edge lists. match_ends() says which two names of columns name the ends of an edge. nodes_look_like() says whether
/// nodes may have such names, so the line may not be a header.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

#include "sheafnn/core/text.hpp"
#include "sheafnn/io/csv_nodes.hpp"

namespace sheafnn::io::detail {

using sheafnn::detail::plain_word;

/// Words in a header for the source of an arc and its target.
struct EndWords {
  std::string_view source, target;
  bool alike = false;  ///< names of nodes may look like them: node1 and node2, u and v
};
inline constexpr EndWords end_words[] = {{"source", "target"},
                                         {"source", "destination"},
                                         {"source", "dest"},
                                         {"source", "sink"},
                                         {"src", "dst"},
                                         {"src", "dest"},
                                         {"src", "tgt"},
                                         {"src", "trg"},
                                         {"src", "target"},
                                         {"from", "to"},
                                         {"start", "end"},
                                         {"begin", "end"},
                                         {"tail", "head"},
                                         {"head", "tail"},
                                         {"sender", "receiver"},
                                         {"sender", "recipient"},
                                         {"follower", "followee"},
                                         {"follower", "followed"},
                                         {"citing", "cited"},
                                         {"who", "whom"},
                                         {"origin", "destination"},
                                         {"ego", "alter"},
                                         {"subject", "object"},
                                         {"parent", "child"},
                                         {"child", "parent"},
                                         {"buyer", "seller"},
                                         {"seller", "buyer"},
                                         {"payer", "payee"},
                                         {"caller", "callee"},
                                         {"left", "right"},
                                         {"first", "second"},
                                         {"one", "two"},
                                         {"row", "col"},
                                         {"row", "column"},
                                         {"paper", "cites"},
                                         {"node", "neighbor"},
                                         {"node", "neighbour"},
                                         {"user", "friend"},
                                         {"person", "friend"},
                                         {"author", "coauthor"},
                                         {"author", "paper"},
                                         {"user", "item"},
                                         {"u", "v", true},
                                         {"i", "j", true},
                                         {"s", "t", true},
                                         {"x", "y", true},
                                         {"a", "b", true},
                                         {"1", "2", true},
                                         {"0", "1", true}};

/// Words that may precede or follow them: FromNodeId, source_id, tx_id_1.
inline constexpr std::string_view end_affixes[] = {
    "id",      "ids",    "node",    "vertex",  "name",    "index",    "idx",    "key",         "code",
    "number",  "no",     "nr",      "num",     "v",       "col",      "column", "field",       "user",
    "person",  "page",   "paper",   "article", "author",  "tx",       "txn",    "transaction", "account",
    "item",    "entity", "address", "wallet",  "station", "airport",  "city",   "country",     "gene",
    "protein", "member", "actor",   "agent",   "company", "customer", "doc",    "document",    "word",
    "url",     "site",   "host",    "ip",      "device",  "player",   "team",   "channel",     "repo",
    "post",    "of",     "the",     "edge",    "link"};

/// Whether a text, in lower case, consists of these words. None is long.
[[nodiscard]] inline bool of_affixes(std::string_view text) {
  if (text.size() > 60) return false;
  return text.empty() || std::any_of(std::begin(end_affixes), std::end(end_affixes), [&](std::string_view word) {
           return text.starts_with(word) && of_affixes(text.substr(word.size()));
         });
}

/// What two columns of a header are.
struct EndColumns {
  bool turned = false;  ///< the first one holds targets
  const EndWords* words = nullptr;
  std::string before, behind;  ///< the words, in lower case
};

/// What the names of two columns say, where they name an arc's ends.
[[nodiscard]] inline std::optional<EndColumns> match_ends(std::string_view first, std::string_view second) {
  const std::string a = plain_word(first), b = plain_word(second);
  for (const bool turned : {false, true}) {
    for (const EndWords& words : end_words) {
      const std::string_view one = turned ? words.target : words.source,
                             two = turned ? words.source : words.target;
      for (std::size_t at = a.find(one); at != std::string::npos; at = a.find(one, at + 1)) {
        EndColumns r{turned && !words.alike, &words, a.substr(0, at), a.substr(at + one.size())};
        const bool numbers = one[0] >= '0' && one[0] <= '9';
        if (b == r.before + std::string(two) + r.behind && of_affixes(r.before) && of_affixes(r.behind) &&
            !(numbers && a.size() == one.size())) {
          return r;
        }
      }
    }
  }
  return std::nullopt;
}

/// Words of which nodes may be called as columns are, in families.
inline constexpr std::string_view name_families[][14] = {
    {"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
     "twelfth", "next", "last"},
    {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"},
    {"left", "right", "middle", "center", "centre", "top", "bottom", "up", "down", "front", "back", "upper",
     "lower"}};

/// Whether two words are of one family.
[[nodiscard]] inline bool of_one_family(std::string_view a, std::string_view b) {
  return std::any_of(std::begin(name_families), std::end(name_families), [&](const auto& family) {
    const auto holds = [&](std::string_view word) {
      return !word.empty() && std::find(std::begin(family), std::end(family), word) != std::end(family);
    };
    return holds(a) && holds(b);
  });
}

/// Whether a node has a name that resembles the names of two columns. In the same place it has another number, letter or
/// word of the family; for a single letter, another letter.
[[nodiscard]] inline bool nodes_look_like(const EndColumns& ends, const NodeNumbers& nodes) {
  const std::size_t around = ends.before.size() + ends.behind.size();
  const bool family = of_one_family(ends.words->source, ends.words->target);
  return (ends.words->alike || family) && nodes.any_name([&](std::string_view name) {
    const std::string plain = plain_word(name);
    if (plain.size() <= around || !plain.starts_with(ends.before) || !plain.ends_with(ends.behind)) return false;
    const std::string_view middle = std::string_view(plain).substr(ends.before.size(), plain.size() - around);
    if (family) return of_one_family(ends.words->source, middle);
    const bool number = middle.find_first_not_of("0123456789") == std::string_view::npos;
    return (number && around > 0) || (middle.size() == 1 && middle[0] >= 'a' && middle[0] <= 'z');
  });
}

}  // namespace sheafnn::io::detail
