// Nonblocking requests whose Python object went before they were complete.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>
#include <utility>
#include <vector>

#include "buffer_arg.hpp"

namespace outcore::python {

/// Keeps the memory of such requests. It may not be released from an I/O thread, which must never wait for
/// the GIL, so it is released when the next request comes or goes. All of it needs the GIL.
template <class Request, class Memory = std::vector<BufferArg>>
class Abandoned {
 public:
  static void add(Request request, Memory memory) {
    list().push_back({std::move(request), std::move(memory)});
  }
  static void release_done() {
    std::erase_if(list(), [](const One& one) { return one.request.done(); });
  }
  /// At the end of the interpreter: nothing may still write into memory that is about to be freed.
  static void finish_at_exit() {
    nanobind::module_::import_("atexit").attr("register")(nanobind::cpp_function([] {
      for (One& one : list()) {
        try {
          one.request.wait();
        } catch (const std::exception&) {  // of a request that nobody waited for
        }
      }
      list().clear();
    }));
  }

 private:
  struct One {
    Request request;
    Memory memory;
  };
  static std::vector<One>& list() {
    static auto* const instance = new std::vector<One>;
    return *instance;
  }
};

}  // namespace outcore::python
