// The rule for labels that readers, programs and Python share.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sheafnn/graph/labels.hpp"

namespace test_labels {
namespace {

using namespace sheafnn;
using namespace sheafnn::math;
using namespace sheafnn::rotation;
using Strings = std::vector<std::string>;
using Codes = std::vector<std::int32_t>;
using Encoded = std::pair<Strings, Codes>;

EncodedLabels encode(const Strings& texts, const MissingLabels& missing = {}) {
  return encode_labels(texts, missing, "t", [](std::size_t u) { return "t:" + std::to_string(u + 1); });
}
Encoded classes(const Strings& texts, const MissingLabels& missing = {}) {
  EncodedLabels r = encode(texts, missing);
  return {r.class_names, r.codes};
}
std::string error_of(const Strings& texts, const MissingLabels& missing = {}) {
  try {
    static_cast<void>(encode(texts, missing));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("labels: texts by their bytes, empty texts and -1 unknown") {
  CHECK(classes({"b", "", "a", "-1", "b", "  ", "-1.0", " -1 "}) ==
        Encoded({"a", "b"}, {1, -1, 0, -1, 1, -1, -1, -1}));
  CHECK(classes({"10", "9", "x"}) == Encoded({"10", "9", "x"}, {0, 1, 2}));
  CHECK(classes({"", "-1"}) == Encoded({}, {-1, -1}));
  CHECK(classes({}) == Encoded({}, {}));
}

TEST_CASE("labels: words for unknown labels that are numbers are compared by value") {
  CHECK(classes({"99.0", "1", "0", "99", "099"}, Strings{"99"}) == Encoded({"0", "1"}, {-1, 1, 0, -1, -1}));
  CHECK(classes({"-2", "1", "0"}, Strings{"-2.0"}) == Encoded({"0", "1"}, {-1, 1, 0}));
  CHECK(classes({"99.0", "x", "9.9"}, Strings{"99", "9,9"}) == Encoded({"9.9", "x"}, {-1, 1, 0}));
}

TEST_CASE("labels: numbers with a decimal comma are seen as a continuous target") {
  Strings texts;
  for (int i = 0; i < 21; ++i) texts.push_back("0," + std::to_string(101 + i));
  CHECK(error_of(texts).find("21 different numbers, of which 21 are not whole, is not allowed") !=
        std::string::npos);
  texts.pop_back();
  CHECK(error_of(texts) == "no error");
}

TEST_CASE("labels: exponents of any size") {
  CHECK(classes({"0.01e-9223372036854775808", "1"}) == Encoded({"0.01e-9223372036854775808", "1"}, {0, 1}));
  CHECK(classes({"0.01e-99999999999999999999", "1"}) == Encoded({"0.01e-99999999999999999999", "1"}, {0, 1}));
}

TEST_CASE("labels: whole numbers below -1 are refused, for -1 beside them is no class") {
  const std::string end =
      " is not allowed; numbers must be at least 0, or -1 where unknown (missing_labels: other words for unknown "
      "labels)";
  CHECK(error_of({"1", "-2", "0", "-2"}) == "t:2: label -2" + end);
  CHECK(error_of({"0.5", "1", "-3.0"}) == "t:3: label -3.0" + end);
  CHECK(error_of({"0.5", "-1.5", "-0"}) == "no error");
  CHECK(error_of({"-2", "x"}) == "no error");
}

TEST_CASE("labels: numbers are classes by value") {
  CHECK(classes({"10", "9", "-1", "9", "2"}) == Encoded({"2", "9", "10"}, {2, 1, -1, 1, 0}));
  CHECK(classes({"1.0", "01", "1e0", "+1", "1", "2.0", "0.2e1", "0", "-0", "0.00"}) ==
        Encoded({"0", "1", "2.0"}, {1, 1, 1, 1, 1, 2, 2, 0, 0, 0}));
  CHECK(classes({"02", "+2"}) == Encoded({"+2"}, {0, 0}));
  CHECK(classes({"0.5", "-0.5", "-2.5", ".25", "1e-2", "5e-1"}) ==
        Encoded({"-2.5", "-0.5", "1e-2", ".25", "0.5"}, {4, 1, 0, 3, 2, 4}));
  // Whole numbers that one double rounds to the same.
  CHECK(classes({"4611686018427387905", "4611686018427387904", "4611686018427387906"}) ==
        Encoded({"4611686018427387904", "4611686018427387905", "4611686018427387906"}, {1, 0, 2}));
  CHECK(classes({"1e300", "1", "1e-300"}) == Encoded({"1e-300", "1", "1e300"}, {2, 1, 0}));
  // One text that is no number: classes are texts.
  CHECK(classes({"1", "1.0", "x"}) == Encoded({"1", "1.0", "x"}, {0, 1, 2}));
}

TEST_CASE("labels: words for missing values are refused, with the way out") {
  CHECK(error_of({"a", "b", "None"}) ==
        "t:3: label 'None' is not allowed; it usually means a missing value. Leave an unknown label empty, or "
        "write -1. Or give the words for an unknown label in missing_labels; all other words are classes then");
  for (const char* text : {"NA",
                           "Na",
                           "N/A",
                           "n/a",
                           "#N/A",
                           "#N/A N/A",
                           "#NA",
                           "<NA>",
                           "n.a.",
                           "nan",
                           "NaN",
                           "-nan",
                           "+NaN",
                           "-nan(ind)",
                           "1.#QNAN",
                           "1.#IND",
                           "-1.#IND",
                           "NaT",
                           "none",
                           "NONE",
                           "Null",
                           "nil",
                           "<null>",
                           "(null)",
                           "\\N",
                           "[missing]",
                           "Missing",
                           "unknown",
                           "Unknown",
                           "undefined",
                           "unk",
                           "Unlabeled",
                           "unlabelled",
                           "?",
                           "-",
                           "--",
                           "---",
                           ".",
                           ".a",
                           "*",
                           "#VALUE!",
                           "#REF!",
                           "#DIV/0!",
                           "#NULL!",
                           "#NUM!",
                           "#NAME?",
                           "inf",
                           "-Infinity",
                           "1.#INF",
                           "not available",
                           "no_data",
                           "No-Data",
                           "NA_character_",
                           " nan ",
                           "\xE2\x80\x93",
                           "\xE2\x80\x94"}) {
    CAPTURE(text);
    CHECK(error_of({"a", text, "b"}).starts_with("t:2: label '"));
    CHECK(error_of({"1", text, "2"}).starts_with("t:2: label '"));
    CHECK(classes({"a", text, "b"}, Strings{text}) == Encoded({"a", "b"}, {0, -1, 1}));
  }
  for (const char* text : {"nano", "Nat King Cole", "anna", "n", "naan", "a.", "-a", "unknown soldier", "no", "+",
                           "#1", "x/a", "missingno", "infinite"}) {
    CAPTURE(text);
    CHECK(encode({text}).class_names == Strings{text});
  }
}

TEST_CASE("labels: words of the caller's own for unknown labels") {
  CHECK(classes({"a", "NA", "none", " n.d. ", "n.d.", "", "-1"}, Strings{"n.d."}) ==
        Encoded({"NA", "a", "none"}, {1, 0, 2, -1, -1, -1, -1}));
  CHECK(classes({"NA", "na", "x"}, Strings{" NA"}) == Encoded({"na", "x"}, {-1, 0, 1}));  // compared exactly
  CHECK(classes({"nan", "?", ""}, Strings{}) == Encoded({"?", "nan"}, {1, 0, -1}));
  CHECK(classes({"0", "1", "99", "99.0"}, Strings{"99"}) == Encoded({"0", "1"}, {0, 1, -1, -1}));
  CHECK(classes({"2", "nan", "10"}, Strings{}) == Encoded({"10", "2", "nan"}, {1, 2, 0}));
}

TEST_CASE("labels: many numbers that are not whole are no classes") {
  Strings texts, whole;
  for (int k = 0; k < 20; ++k) texts.push_back("0." + std::to_string(k + 1) + "1");
  for (int k = 0; k < 300; ++k) whole.push_back(std::to_string(k) + ".0");
  CHECK(encode(texts).class_names.size() == 20);
  CHECK(encode(whole).class_names.size() == 300);
  texts.push_back("-1.0");
  CHECK(encode(texts).class_names.size() == 20);
  texts.push_back("7");
  CHECK(error_of(texts) ==
        "t: 21 different numbers, of which 20 are not whole, is not allowed; they look like a continuous target; "
        "classes are texts or whole numbers, or at most 20 different numbers");
  texts.back() = "0.5";
  texts.push_back("n.d");
  CHECK(error_of(texts, Strings{"none"}).starts_with("t: 21 different numbers, of which 21 are not whole,"));
}

TEST_CASE("labels: too many classes") {
  Strings many;
  for (int k = 0; k <= 65536; ++k) many.push_back(std::to_string(k));
  CHECK(error_of(many) == "t: 65537 classes is not allowed; at most 65536 are supported");
  many.pop_back();
  CHECK(encode(many).codes.back() == 65535);
}

TEST_CASE("texts in messages: UTF-8 as it is, other bytes as question marks") {
  using detail::printable;
  CHECK(printable("Jos\xC3\xA9 \xE6\x9D\x8E \xF0\x9F\x90\x91") == "Jos\xC3\xA9 \xE6\x9D\x8E \xF0\x9F\x90\x91");
  CHECK(printable("a\nb\x1B[31m\x7F\xFF\xC3") == "a?b?[31m???");
  CHECK(printable("\xC2\x85\xE2\x80\xAE\xE2\x80\xA8\xEF\xBB\xBF") ==
        "????");  // they would hide or turn what follows
  std::string accents;
  for (int k = 0; k < 60; ++k) accents += "\xC3\xA9";
  CHECK(printable(accents) == accents);
  CHECK(printable(accents + "x") == accents + "...");
}

}  // namespace test_labels
