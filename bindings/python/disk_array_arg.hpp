// Arguments of disk arrays, as Python gives them.
#pragma once

#include <nanobind/nanobind.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "outcore/disk_array.hpp"
#include "outcore/error.hpp"

namespace outcore::python {

using Numbers = std::vector<std::int64_t>;

inline Extents extents(const Numbers& values) {
  return Extents(std::span(values.data(), values.size()));
}

inline nanobind::tuple numbers(const Extents& extents) {
  nanobind::list list;
  for (const std::int64_t each : extents.values()) list.append(each);
  return nanobind::tuple(list);
}

inline store::CodecOptions codec(const std::string& name, std::size_t element_bytes) {
  if (name == "none") return {};
  if (name == "blosc2" || name == "blosc2-zstd") return store::blosc2_for(element_bytes);
  if (name == "blosc2-lz4") return store::blosc2_for(element_bytes, store::Compressor::lz4);
  if (name == "fixed-point") return {.codec = store::Codec::fixed_point};
  if (const store::Codec added = store::codec_named(name); added != store::Codec::none)
    return {.codec = added};
  throw Error(EINVAL, {.attempted = "codec '" + name + "'",
                       .detail = "it is none, blosc2 (the same as blosc2-zstd), blosc2-lz4, fixed-point or "
                                 "one that was added"});
}

}  // namespace outcore::python
