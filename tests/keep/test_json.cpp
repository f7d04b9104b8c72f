// JSON from any writer: texts that are read, texts that are refused, and damage, which is always noticed.
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "keep/checkpoint_facts.hpp"
#include "keep/json.hpp"
#include "outcore/error.hpp"
#include "support/check.hpp"

using namespace outcore;
using keep::Json;
using keep::JsonError;

namespace {

bool refused(const std::string& text) {
  try {
    (void)keep::parse(text);
    return false;
  } catch (const JsonError&) {
    return true;
  }
}

const std::string facts =
    R"({"kind": "outcore checkpoint", "format": 2, "generation": 3, "arrays": {"t2": {"kind": "global", )"
    R"("shape": [4, 5], "file_shape": [4, 5], "dtype": "float64", "identity": "array t2", "commits": 1}}, )"
    R"("meta": {"cycle": 12, "energy": [-7.5e1, NaN]}})";

int code_of(const std::string& metadata) {
  try {
    (void)keep::facts_of(metadata, "x");
    return 0;
  } catch (const Error& error) {
    return error.errno_value();
  }
}

std::string changed(const std::string& from, const std::string& to) {
  std::string text = facts;
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST("values of all kinds") {
  const Json read =
      keep::parse(R"( {"a": [1, -2, 2.5, 99999999999999999999], "b": {}, "c": null, "d": "x"} )");
  check::is_true(read.object.size() == 4);
  const Json& list = read.at("a");
  check::is_true(list.list.size() == 4 && list.list[1].integer == -2 &&
                 list.list[1].kind == Json::Kind::integer);
  check::is_true(list.list[2].kind == Json::Kind::other && list.list[3].kind == Json::Kind::other);
  check::is_true(list.text == "[1, -2, 2.5, 99999999999999999999]");
  check::is_true(read.at("b").kind == Json::Kind::object && read.at("d").string == "x");
  check::is_true(!read.find("e"));
}

TEST("texts survive") {
  for (const std::string text : {"", "\"\\/\b\n\t\x01", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80"})
    check::is_true(keep::parse(keep::quoted(text)).string == text);
  check::is_true(keep::parse(R"("\u00e4 \u20ac \ud83d\ude00 \/")").string ==
                 "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80 /");
  for (const std::string text : {"\xff", "\xc3", "a\xe2\x82", "\xc0\x80"}) {
    bool was_refused = false;
    try {
      (void)keep::quoted(text);
    } catch (const JsonError&) {
      was_refused = true;
    }
    check::is_true(was_refused);
  }
}

TEST("what is no json is refused") {
  for (const char* text : {"", "{", "[1,", "[1 2]", "{\"a\" 1}", "{a: 1}", "\"x", "\"\\x\"", "\"\\u12\"",
                           "nul", "1 2", "+", "{\"a\": 1,}", "\"\n\""})
    check::is_true(refused(text));
  check::is_true(refused(std::string(5000, '[')));
}

TEST("facts of a checkpoint") {
  const auto read = keep::facts_of(facts, "x");
  check::is_true(read.generation == 3 && read.arrays.size() == 1 && read.arrays[0].name == "t2");
  check::is_true(read.arrays[0].shape == std::vector<std::int64_t>({4, 5}) &&
                 read.arrays[0].kind == Kept::global);
  check::is_true(read.meta == R"({"cycle": 12, "energy": [-7.5e1, NaN]})");
  check::is_true(keep::facts_of(keep::as_json(read), "x").arrays[0].identity == "array t2");
  check::is_true(code_of("no JSON") == EINVAL && code_of("{\"kind\": \"x\"}") == EINVAL);
  check::is_true(code_of(changed("\"format\": 2", "\"format\": 3")) == ENOTSUP);
  for (const auto& [from, to] :
       {std::pair("\"t2\"", "\"../t2\""), std::pair("\"global\"", "\"wide\""),
        std::pair("[4, 5], \"file", "[4, -5], \"file"), std::pair("[4, 5]", "[4, 6]"),
        std::pair("float64", "float63"), std::pair("\"commits\": 1", "\"commits\": 0"),
        std::pair("\"generation\": 3", "\"generation\": 3.5"), std::pair("\"meta\"", "\"data\""),
        std::pair("\"identity\"", "\"ident\"")})
    check::is_true(code_of(changed(from, to)) == EIO);
}

TEST("damage of any byte is an error or other facts") {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    for (const char c : {'\0', '"', '}', '9'}) {
      std::string damaged = facts;
      damaged[i] = c;
      const int code = code_of(damaged);
      check::is_true(code == 0 || code == EIO || code == EINVAL || code == ENOTSUP);
    }
    check::is_true(code_of(facts.substr(0, i)) == EINVAL);
  }
}

TEST_MAIN
