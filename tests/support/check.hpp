// A test program is a list of named checks. The library is built where only a compiler and PyPI are at hand,
// and PyPI ships no C++ test framework, hence these lines.
#pragma once

#include <concepts>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <source_location>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace check {

struct Test {
  const char* name;
  std::function<void()> body;
};

inline std::vector<Test>& tests() {
  static std::vector<Test> list;
  return list;
}

struct Register {
  Register(const char* name, std::function<void()> body) { tests().push_back({name, std::move(body)}); }
};

[[noreturn]] inline void fail(const std::string& text, std::source_location at) {
  std::ostringstream out;
  out << at.file_name() << ":" << at.line() << ": " << text;
  throw std::runtime_error(out.str());
}

inline void is_true(bool value, const char* text = "expected true",
                    std::source_location at = std::source_location::current()) {
  if (!value) fail(text, at);
}

template <class T>
concept Integer = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> &&
                  !std::same_as<T, char8_t> && !std::same_as<T, wchar_t>;

/// Numbers are compared by value, whatever their types: no conversion can change them.
template <class A, class B>
bool same(const A& actual, const B& expected) {
  if constexpr (Integer<A> && Integer<B>)
    return std::cmp_equal(actual, expected);
  else
    return actual == expected;
}

template <class A, class B>
void equal(const A& actual, const B& expected, std::source_location at = std::source_location::current()) {
  if (same(actual, expected)) return;
  std::ostringstream out;
  out << "got " << actual << ", expected " << expected;
  fail(out.str(), at);
}

/// Checks that the body throws an E, and returns it, so that its message and code can be checked.
template <class E>
E throws(const std::function<void()>& body, std::source_location at = std::source_location::current()) {
  try {
    body();
  } catch (const E& error) {
    return error;
  }
  fail("expected an exception, none was thrown", at);
}

inline void contains(const std::string& text, const std::string& part,
                     std::source_location at = std::source_location::current()) {
  if (text.find(part) == std::string::npos) fail("'" + text + "' does not contain '" + part + "'", at);
}

/// Runs all tests, or those whose name contains argv[1].
inline int run(int argc, char** argv) {
  int failed = 0, ran = 0;
  for (const auto& test : tests()) {
    if (argc > 1 && !std::strstr(test.name, argv[1])) continue;
    ++ran;
    try {
      test.body();
      std::printf("ok    %s\n", test.name);
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAIL  %s\n      %s\n", test.name, error.what());
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed\n", ran - failed, failed);
  return failed || ran == 0 ? 1 : 0;
}

}  // namespace check

#define CHECK_CONCAT2(a, b) a##b
#define CHECK_CONCAT(a, b) CHECK_CONCAT2(a, b)
#define TEST(name)                                                                                    \
  static void CHECK_CONCAT(test_body_, __LINE__)();                                                   \
  static check::Register CHECK_CONCAT(test_reg_, __LINE__)(name, CHECK_CONCAT(test_body_, __LINE__)); \
  static void CHECK_CONCAT(test_body_, __LINE__)()
#define TEST_MAIN                   \
  int main(int argc, char** argv) { \
    return check::run(argc, argv);  \
  }
