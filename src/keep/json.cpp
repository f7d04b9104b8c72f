#include "keep/json.hpp"

#include <charconv>
#include <cstdio>

namespace outcore::keep {
namespace {

constexpr int max_depth = 200;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json all() {
    Json value = read(0);
    skip_blanks();
    if (at_ != text_.size()) fail("something behind the end");
    return value;
  }

 private:
  [[noreturn]] void fail(const char* why) const {
    throw JsonError("no JSON at byte " + std::to_string(at_) + ": " + why);
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char expected) {
    skip_blanks();
    if (next() != expected || at_ == text_.size()) return false;
    ++at_;
    return true;
  }

  void expect(char expected, const char* why) {
    if (!take(expected)) fail(why);
  }

  Json read(int depth) {
    if (depth > max_depth) fail("nested too deeply");
    skip_blanks();
    const std::size_t begin = at_;
    Json value;
    switch (next()) {
      case '{':
        read_object(value, depth);
        break;
      case '[':
        read_list(value, depth);
        break;
      case '"':
        value.kind = Json::Kind::string;
        value.string = read_string();
        break;
      default:
        read_word(value);
    }
    value.text = text_.substr(begin, at_ - begin);
    return value;
  }

  void read_object(Json& value, int depth) {
    value.kind = Json::Kind::object;
    ++at_;
    if (take('}')) return;
    do {
      skip_blanks();
      if (next() != '"') fail("a name should begin here");
      std::string name = read_string();
      expect(':', "a colon is missing");
      value.object.emplace_back(std::move(name), read(depth + 1));
    } while (take(','));
    expect('}', "an object has no end");
  }

  void read_list(Json& value, int depth) {
    value.kind = Json::Kind::list;
    ++at_;
    if (take(']')) return;
    do value.list.push_back(read(depth + 1));
    while (take(','));
    expect(']', "a list has no end");
  }

  /// A number or a name, such as null.
  void read_word(Json& value) {
    const std::size_t begin = at_;
    while (std::string_view("+-.0123456789").find(next()) != std::string_view::npos ||
           (next() >= 'a' && next() <= 'z') || (next() >= 'A' && next() <= 'Z'))
      ++at_;
    const std::string_view word = text_.substr(begin, at_ - begin);
    for (const char* name : {"null", "true", "false", "NaN", "Infinity", "-Infinity"})
      if (word == name) return;
    const char* const last = word.data() + word.size();
    const auto whole = std::from_chars(word.data(), last, value.integer);
    if (whole.ec == std::errc() && whole.ptr == last) {
      value.kind = Json::Kind::integer;
      return;
    }
    double number = 0;
    const auto found = std::from_chars(word.data(), last, number);
    if (word.empty() || found.ptr != last || found.ec == std::errc::invalid_argument) {
      at_ = begin;
      fail("no value");
    }
  }

  unsigned read_unit() {
    unsigned unit = 0;
    const std::string_view digits = text_.substr(at_, 4);
    const auto found = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (digits.size() < 4 || found.ptr != digits.data() + 4) fail("four hexadecimal digits are missing");
    at_ += 4;
    return unit;
  }

  void add_escaped(std::string& result) {
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    const char which = next();
    ++at_;
    if (const auto found = names.find(which); found != std::string_view::npos) {
      result += meanings[found];
      return;
    }
    if (which != 'u') fail("no character stands behind a backslash like that");
    unsigned point = read_unit();
    if (point >= 0xd800 && point < 0xdc00 && text_.substr(at_, 2) == "\\u") {  // two of them are one
      at_ += 2;
      point = 0x10000 + ((point - 0xd800) << 10) + ((read_unit() - 0xdc00) & 0x3ff);
    }
    add_utf8(result, point);
  }

  static void add_utf8(std::string& result, unsigned point) {
    const auto add = [&](unsigned byte) { result += static_cast<char>(byte); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xc0 | point >> 6);
    } else {
      if (point < 0x10000) {
        add(0xe0 | point >> 12);
      } else {
        add(0xf0 | point >> 18);
        add(0x80 | (point >> 12 & 0x3f));
      }
      add(0x80 | (point >> 6 & 0x3f));
    }
    add(0x80 | (point & 0x3f));
  }

  std::string read_string() {
    std::string result;
    for (++at_; at_ < text_.size();) {
      const char c = text_[at_++];
      if (c == '"') return result;
      if (c == '\\')
        add_escaped(result);
      else if (static_cast<unsigned char>(c) < 0x20)
        fail("a control character in a text");
      else
        result += c;
    }
    fail("a text has no end");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Position of the first byte that is not UTF-8; the length of the text if all of it is.
std::size_t end_of_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t more = first < 0x80 ? 0 : first < 0xc2 ? 9 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (more == 9 || first > 0xf4 || i + more >= text.size() + (more == 0)) return i;
    for (std::size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return i;
}

}  // namespace

const Json* Json::find(std::string_view name) const noexcept {
  for (const auto& [its_name, value] : object)
    if (its_name == name) return &value;
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  if (const Json* const found = find(name)) return *found;
  throw JsonError("'" + std::string(name) + "' is missing");
}

Json parse(std::string_view text) {
  return Reader(text).all();
}

std::string text_of(const std::string& json) {
  const Json read = parse(json);
  return read.kind == Json::Kind::string ? read.string : json;
}

std::string quoted(std::string_view text) {
  if (const std::size_t end = end_of_utf8(text); end < text.size())
    throw JsonError("byte " + std::to_string(end) + " of a text is not UTF-8");
  std::string result = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      result += code;
      continue;
    }
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

}  // namespace outcore::keep
