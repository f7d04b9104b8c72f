#include "capi/handles.hpp"

#include <algorithm>
#include <cstring>

namespace outcore::capi {
namespace {

thread_local int last_code = OC_OK;
thread_local std::string last_text;

/// No future version has a larger structure. A larger size was not set by the caller, and memory behind the
/// structure must not be read.
constexpr std::size_t max_options_bytes = 4096;

std::size_t size_of(const char* attempted, const void* buffer, std::int64_t bytes) {
  if (bytes < 0)
    throw Error(EINVAL, {.attempted = attempted, .detail = "negative size: " + std::to_string(bytes)});
  if (!buffer && bytes > 0) invalid(attempted, "the buffer is NULL");
  return static_cast<std::size_t>(bytes);
}

}  // namespace

int failed(int code, const char* text) noexcept {
  last_code = code;
  try {
    last_text = text;
  } catch (const std::bad_alloc&) {
    last_text.clear();  // text_of falls back to the system's words
  }
  return code;
}

const char* text_of(int code) noexcept {
  if (code == OC_OK) return "success";
  if (code == last_code && !last_text.empty()) return last_text.c_str();
  return code == OC_END_OF_FILE ? "end of file" : std::strerror(code);
}

const char* last_error() noexcept {
  return last_text.c_str();
}

void invalid(const char* attempted, const char* why) {
  throw Error(EINVAL, {.attempted = attempted, .detail = why});
}

void copy_options(const void* given, std::size_t least, const char* attempted, void* options,
                  std::size_t size) {
  std::size_t given_size = 0;
  std::memcpy(&given_size, given, sizeof given_size);
  if (given_size < least || given_size > max_options_bytes)
    invalid(attempted, "the options do not say their size: set it to sizeof of the structure");
  const auto* const bytes = static_cast<const std::byte*>(given);
  if (given_size > size &&
      std::any_of(bytes + size, bytes + given_size, [](std::byte b) { return b != std::byte{0}; }))
    invalid(attempted, "the options have fields that this version of Outcore does not know");
  std::memcpy(options, given, std::min(given_size, size));
}

std::span<std::byte> memory(void* buffer, std::int64_t bytes) {
  return {static_cast<std::byte*>(buffer), size_of("read", buffer, bytes)};
}
std::span<const std::byte> memory(const void* buffer, std::int64_t bytes) {
  return {static_cast<const std::byte*>(buffer), size_of("write", buffer, bytes)};
}

device::PageCache page_cache_of(int page_cache) {
  switch (page_cache) {
    case OC_PAGE_CACHE_AUTO:
      return device::PageCache::automatic;
    case OC_PAGE_CACHE_BUFFERED:
      return device::PageCache::buffered;
    case OC_PAGE_CACHE_DIRECT:
      return device::PageCache::direct;
    default:
      invalid("open", "page_cache is none of OC_PAGE_CACHE_*");
  }
}

void report(const device::FileSystem& system, std::int64_t* free_bytes, char* type, std::size_t type_size) {
  if (free_bytes) *free_bytes = system.free_bytes;
  if (!type || type_size == 0) return;
  const auto size = std::min(type_size - 1, system.type.size());
  std::memcpy(type, system.type.data(), size);
  type[size] = 0;
}

}  // namespace outcore::capi
