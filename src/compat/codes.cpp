#include "compat/codes.hpp"

#include <array>
#include <cstring>

namespace outcore::compat {
namespace {

constexpr int first_eaf = -10001;  // downwards
constexpr auto eaf_words = std::to_array<const char*>({"end of the file",
                                                       "too many files are open",
                                                       "out of memory",
                                                       "a file could not be opened",
                                                       "a file could not be closed",
                                                       "there is no such file descriptor",
                                                       "a write failed",
                                                       "an asynchronous write failed",
                                                       "a read failed",
                                                       "an asynchronous read failed",
                                                       "waiting for a request failed",
                                                       "asking for a request failed",
                                                       "a file could not be deleted",
                                                       "this operation is not implemented",
                                                       "asking for a file or file system failed",
                                                       "an argument is too short",
                                                       "an argument is too long",
                                                       "the offset is no whole number from 0 on",
                                                       "a file could not be truncated",
                                                       "asking for a length failed"});

constexpr int first_elio = -2000;  // upwards
constexpr auto elio_words = std::to_array<const char*>({"a place in a file could not be reached",
                                                        "a write failed",
                                                        "an asynchronous write failed",
                                                        "a read failed",
                                                        "an asynchronous read failed",
                                                        "waiting for a request failed",
                                                        "there is no such request",
                                                        "the mode of the file forbids it",
                                                        "the directory could not be found",
                                                        "asking for a file or directory failed",
                                                        "a file could not be opened",
                                                        "out of memory",
                                                        "this operation is not supported",
                                                        "a file could not be deleted",
                                                        "a file could not be closed",
                                                        "interrupted too often",
                                                        "the result of a request could not be had",
                                                        "a name is too long",
                                                        "the type of the file system could not be found",
                                                        "a number is not valid",
                                                        "another type of file system or device",
                                                        "asking for a request failed",
                                                        "a file could not be truncated",
                                                        "end of the file",
                                                        "a file could not be put on stable storage"});

template <class Words>
bool has(const Words& words, int index) {
  return index >= 0 && index < static_cast<int>(words.size());
}

}  // namespace

const char* meaning(int code) noexcept {
  if (const int index = first_eaf - code; has(eaf_words, index)) return eaf_words[index];
  if (const int index = code - first_elio; has(elio_words, index)) return elio_words[index];
  return code > 0 && code < 200 ? std::strerror(code) : "";
}

}  // namespace outcore::compat
