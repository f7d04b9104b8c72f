#include "keep/checkpoint_facts.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <string_view>

#include "keep/json.hpp"
#include "outcore/error.hpp"

namespace outcore::keep {
namespace {

constexpr std::string_view kind = "outcore checkpoint";
constexpr std::int64_t format = 2;
constexpr std::size_t max_name = 100, max_shape = 64;
constexpr std::array<std::string_view, 3> kinds = {"global", "disk", "numpy"};

[[noreturn]] void damaged(const std::string& why) {
  throw JsonError(why);
}

std::string list_of(const std::vector<std::int64_t>& numbers) {
  std::string text = "[";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::int64_t whole(const Json& object, std::string_view name, std::int64_t least) {
  const Json& value = object.at(name);
  if (value.kind != Json::Kind::integer || value.integer < least)
    damaged(std::string(name) + " is not a whole number of at least " + std::to_string(least));
  return value.integer;
}

const std::string& text(const Json& object, std::string_view name) {
  const Json& value = object.at(name);
  if (value.kind != Json::Kind::string) damaged(std::string(name) + " is not a text");
  return value.string;
}

void check_members(const Json& object, std::initializer_list<std::string_view> allowed) {
  if (object.kind != Json::Kind::object) damaged("an object is missing");
  for (const auto& [name, value] : object.object)
    if (std::ranges::find(allowed, name) == allowed.end()) damaged("'" + name + "' is unknown");
}

std::vector<std::int64_t> shape(const Json& object, std::string_view name) {
  const Json& value = object.at(name);
  if (value.kind != Json::Kind::list || value.list.size() > max_shape)
    damaged(std::string(name) + " is no shape");
  std::vector<std::int64_t> result;
  for (const Json& each : value.list) {
    if (each.kind != Json::Kind::integer || each.integer < 0)
      damaged(std::string(name) + " holds something else than whole numbers of at least 0");
    result.push_back(each.integer);
  }
  return result;
}

KeptArray array_of(const std::string& name, const Json& data) {
  if (!is_name(name)) damaged("'" + name.substr(0, max_name) + "' is no name of an array");
  check_members(data, {"kind", "shape", "file_shape", "dtype", "identity", "commits"});
  KeptArray array;
  array.name = name;
  const auto its_kind = std::ranges::find(kinds, text(data, "kind"));
  if (its_kind == kinds.end()) damaged("the kind of " + name + " is unknown");
  array.kind = static_cast<Kept>(its_kind - kinds.begin());
  try {
    array.type = element_type(text(data, "dtype"));
  } catch (const Error&) {
    damaged("the dtype of " + name + " is unknown");
  }
  array.shape = shape(data, "shape");
  array.file_shape = shape(data, "file_shape");
  if (array.file_shape != file_shape(array.shape))
    damaged("the file_shape " + list_of(array.file_shape) + " of " + name + " does not fit its shape " +
            list_of(array.shape));
  array.identity = text(data, "identity");
  array.commits = whole(data, "commits", 1);
  return array;
}

}  // namespace

bool is_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= max_name && fits(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return fits(c) || c == '.' || c == '+' || c == '-'; });
}

std::vector<std::int64_t> file_shape(const std::vector<std::int64_t>& shape) {
  if (shape.empty() || std::ranges::find(shape, 0) != shape.end()) return {1};
  return shape;
}

std::string as_json(const CheckpointFacts& facts) {
  std::string arrays;
  for (const KeptArray& each : facts.arrays) {
    arrays += (arrays.empty() ? "" : ", ") + quoted(each.name) +
              ": {\"kind\": " + quoted(kinds[static_cast<std::size_t>(each.kind)]) +
              ", \"shape\": " + list_of(each.shape) + ", \"file_shape\": " + list_of(each.file_shape) +
              ", \"dtype\": " + quoted(name(each.type)) + ", \"identity\": " + quoted(each.identity) +
              ", \"commits\": " + std::to_string(each.commits) + "}";
  }
  return "{\"kind\": " + quoted(kind) + ", \"format\": " + std::to_string(format) +
         ", \"generation\": " + std::to_string(facts.generation) + ", \"arrays\": {" + arrays +
         "}, \"meta\": " + facts.meta + "}";
}

bool is_checkpoint(const std::string& metadata) {
  try {
    const Json read = parse(metadata);
    const Json* const its_kind = read.find("kind");
    return its_kind && its_kind->string == kind;
  } catch (const JsonError&) {
    return false;
  }
}

CheckpointFacts facts_of(const std::string& metadata, const std::string& path) {
  const auto refused = [&](int code, const std::string& why) {
    return Error(code, {.attempted = "open checkpoint", .path = path, .detail = why});
  };
  if (!is_checkpoint(metadata)) throw refused(EINVAL, "it is a disk array, no checkpoint");
  try {
    const Json read = parse(metadata);
    const Json* const its_format = read.find("format");
    if (!its_format || its_format->kind != Json::Kind::integer || its_format->integer != format)
      throw refused(ENOTSUP, "it is of format " + (its_format ? std::string(its_format->text) : "1") +
                                 "; this program reads format " + std::to_string(format));
    check_members(read, {"kind", "format", "generation", "arrays", "meta"});
    CheckpointFacts facts;
    facts.generation = whole(read, "generation", 0);
    const Json& arrays = read.at("arrays");
    if (arrays.kind != Json::Kind::object) damaged("arrays is no object");
    for (const auto& [name, data] : arrays.object) facts.arrays.push_back(array_of(name, data));
    facts.meta = read.at("meta").text;
    return facts;
  } catch (const JsonError& error) {
    throw refused(EIO, std::string("damaged: ") + error.what());
  }
}

void check_array(const DiskArray& found, const KeptArray& wanted, const std::string& path) {
  const auto its_shape = found.shape().values();
  std::string why;
  if (found.identity() != wanted.identity)
    why = "it is " + (found.identity().empty() ? "an array of no checkpoint" : found.identity()) + ", not " +
          wanted.identity;
  else if (!std::ranges::equal(its_shape, wanted.file_shape))
    why = "its shape is " + found.shape().text() + ", that of " + wanted.identity + " is " +
          list_of(wanted.file_shape);
  else if (found.type() != wanted.type)
    why = "its type is " + std::string(name(found.type())) + ", that of " + wanted.identity + " is " +
          std::string(name(wanted.type));
  else if (static_cast<std::int64_t>(found.generation()) != wanted.commits)
    why = "it was committed " + std::to_string(found.generation()) + " times, " + wanted.identity + " " +
          std::to_string(wanted.commits) + " times";
  if (!why.empty())
    throw Error(EIO,
                {.attempted = "open array '" + wanted.name + "' of checkpoint", .path = path, .detail = why});
}

}  // namespace outcore::keep
