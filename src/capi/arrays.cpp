#include "capi/arrays.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "keep/json.hpp"

namespace outcore::capi {

store::CodecOptions codec_of(const char* given, std::size_t element_bytes) {
  const std::string name = given && *given ? given : "none";
  if (name == "none") return {};
  if (name == "blosc2" || name == "blosc2-zstd") return store::blosc2_for(element_bytes);
  if (name == "blosc2-lz4") return store::blosc2_for(element_bytes, store::Compressor::lz4);
  throw Error(EINVAL, {.attempted = "codec '" + name + "'",
                       .detail = "it is none, blosc2 (the same as blosc2-zstd) or blosc2-lz4"});
}

std::string kept_metadata(const char* text, const char* attempted) {
  if (!text || !*text) return {};
  try {
    return keep::quoted(text);
  } catch (const keep::JsonError& error) {
    throw Error(EINVAL, {.attempted = attempted, .detail = std::string("metadata: ") + error.what()});
  }
}

std::string text_of_metadata(const std::string& kept) {
  try {
    return keep::text_of(kept);
  } catch (const keep::JsonError&) {
    return kept;  // metadata of C++, which may be any bytes
  }
}

Extents extents_of(int rank, const std::int64_t* values, const char* attempted) {
  if (rank < 0 || rank > max_rank)
    throw Error(EINVAL,
                {.attempted = attempted,
                 .detail = "the rank is " + std::to_string(rank) + ", not 1 to " + std::to_string(max_rank)});
  if (!values && rank > 0) invalid(attempted, "a list of numbers is NULL");
  return Extents(std::span(values, static_cast<std::size_t>(rank)));
}

Box box_of(int rank, const std::int64_t* begin, const std::int64_t* end, const char* attempted) {
  return {extents_of(rank, begin, attempted), extents_of(rank, end, attempted)};
}

ElementType element_type_of(int type, const char* attempted) {
  if (type < OC_INT8 || type > OC_COMPLEX128)
    invalid(attempted, "the type is none of OC_INT8 to OC_COMPLEX128");
  return static_cast<ElementType>(type);
}

Strided strided_of(const void* memory, const std::int64_t* stride_bytes, const Box& box,
                   std::size_t element_bytes, const char* attempted) {
  if (!memory && !box.empty()) invalid(attempted, "the memory is NULL");
  auto* const data = static_cast<std::byte*>(const_cast<void*>(memory));
  if (stride_bytes) return {data, extents_of(box.rank(), stride_bytes, attempted)};
  return {data, row_major(box.shape(), element_bytes)};
}

void hand_out(const Extents& extents, std::int64_t* place) {
  if (place) std::ranges::copy(extents.values(), place);
}

void hand_out(const std::string& text, char* place, std::size_t size, std::int64_t* bytes) {
  if (bytes) *bytes = static_cast<std::int64_t>(text.size());
  if (!place || size == 0) return;
  const std::size_t length = std::min(size - 1, text.size());
  std::memcpy(place, text.data(), length);
  place[length] = 0;
}

DiskArrayOptions options_of_array(const oc_dra_options* given, int rank, std::size_t element_bytes,
                                  const char* attempted) {
  const oc_dra_options options = options_of(given, attempted);
  if (options.expected_bytes < 0 || options.cache_bytes < 0 || options.client_cache_bytes < 0)
    invalid(attempted, "a number of bytes is negative");
  return {.path = options.path ? options.path : "",
          .overwrite = options.overwrite != 0,
          .placement = placement_of(options.placement, attempted),
          .chunk = options.chunk ? extents_of(rank, options.chunk, attempted) : Extents{},
          .typical = options.typical ? extents_of(rank, options.typical, attempted) : Extents{},
          .codec = codec_of(options.codec, element_bytes),
          .expected_bytes = options.expected_bytes ? options.expected_bytes : -1,
          .metadata = kept_metadata(options.metadata, attempted),
          .caches = {.cache_bytes = options.cache_bytes ? options.cache_bytes : -1,
                     .client_cache_bytes = options.client_cache_bytes}};
}

}  // namespace outcore::capi

extern "C" std::size_t oc_element_bytes(int type) {
  if (type < OC_INT8 || type > OC_COMPLEX128) return 0;
  return outcore::size_bytes(static_cast<outcore::ElementType>(type));
}
