#include "compat/shared.hpp"

#include <atomic>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "compat/codes.hpp"
#include "outcore/compat/elio.h"

namespace outcore::compat {
namespace {

thread_local int last_code = 0;
thread_local std::string last_text;
std::atomic<int> last_opening{0};
std::atomic<bool> prints{false};

}  // namespace

std::string text_of(const char* characters, std::size_t length) {
  std::string text(characters, length);
  const auto end = text.find('\0');
  if (end != std::string::npos) text.resize(end);
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::string text_of(const char* characters) {
  return characters ? characters : "";
}

void hand_out(const std::string& text, char* place, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) place[i] = i < text.size() ? text[i] : ' ';
}

void hand_out_c(const std::string& text, char* place, std::size_t size) {
  std::snprintf(place, size, "%s", text.c_str());
}

int failed(int code, const std::string& text) {
  last_code = code;
  last_text = text;
  if (prints) std::fprintf(stderr, "outcore: %s\n", text.c_str());
  return code;
}

int failed(int code) {
  return failed(code, oc_last_error());
}

int caught(int code) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return failed(code ? code : ENOMEM, "out of memory");  // a short text, which takes no memory
  } catch (const std::length_error&) {                     // more than any memory
    return failed(code ? code : ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return failed(code ? code : EIO, error.what());
  }
}

std::string error_text(int code) {
  if (code == 0) return "OK";
  if (code == ELIO_PENDING_ERR) code = last_opening;
  return code != 0 && code == last_code ? last_text : meaning(code);
}

void opening_failed(int code) {
  last_opening = code;
}

void print_errors(bool on) {
  prints = on;
}

SplitPath split_path(const std::string& path) {
  const auto slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

}  // namespace outcore::compat

/// The text of the last failure of a function with a classic name in this thread.
OUTCORE_CLASSIC const char* oc_pario_last_error() {
  return outcore::compat::last_text.c_str();
}
