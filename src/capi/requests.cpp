#include "capi/requests.hpp"

#include <cerrno>
#include <exception>
#include <span>
#include <vector>

#include "base/request_state.hpp"
#include "capi/handles.hpp"
#include "outcore/outcore.h"

namespace outcore::capi {
namespace {

// Leaked: at exit requests end with their files, without this table.
auto& requests = *new Table<std::int64_t, Outstanding>;

std::span<const std::int64_t> list_of(int count, const std::int64_t* numbers) {
  if (count < 0 || (!numbers && count > 0)) invalid("wait", "there is no list of requests");
  return {numbers, static_cast<std::size_t>(count)};
}

}  // namespace

std::int64_t number_of(Outstanding request) {
  return requests.add(std::move(request));
}

int report_moved(const std::string& path, std::int64_t moved, std::int64_t wanted, std::int64_t* place) {
  if (place) *place = moved;
  if (place || moved >= wanted) return OC_OK;
  const auto text = "read of " + std::to_string(wanted) + " bytes of " + path + ": end of file after " +
                    std::to_string(moved) + " bytes";
  return failed(OC_END_OF_FILE, text.c_str());
}

}  // namespace outcore::capi

using namespace outcore::capi;

extern "C" {

int oc_wait(int64_t request, int64_t* bytes) {
  return guarded([&] {
    auto outstanding = requests.take(request, EINVAL, "request");
    return report_moved(outstanding.path, outstanding.request.wait(), outstanding.wanted_bytes, bytes);
  });
}

int oc_test(int64_t request, int* done) {
  return guarded([&] {
    if (!done) invalid("test", "done is NULL");
    const auto looked_at = requests.get(request, EINVAL, "request").request;
    if (!looked_at.done()) looked_at.state()->help();
    *done = looked_at.done() ? 1 : 0;  // oc_wait returns its error
    return OC_OK;
  });
}

int oc_wait_all(int count, const int64_t* list) {
  return guarded([&] {
    std::exception_ptr first;
    int code = OC_OK;
    std::string text;
    for (const std::int64_t number : list_of(count, list)) try {
        auto outstanding = requests.take(number, EINVAL, "request");
        const int its =
            report_moved(outstanding.path, outstanding.request.wait(), outstanding.wanted_bytes, nullptr);
        if (its == OC_OK || code != OC_OK || first) continue;
        code = its;
        text = text_of(its);
      } catch (...) {
        if (!first && code == OC_OK) first = std::current_exception();
      }
    if (first) std::rethrow_exception(first);
    return code == OC_OK ? code : failed(code, text.c_str());
  });
}

int oc_wait_any(int count, const int64_t* list, int* index) {
  return guarded([&] {
    if (!index) invalid("wait", "index is NULL");
    std::vector<outcore::Request> all;
    for (const std::int64_t number : list_of(count, list))
      all.push_back(requests.get(number, EINVAL, "request").request);
    *index = static_cast<int>(wait_any(all));
    return OC_OK;
  });
}

const char* oc_strerror(int code) {
  return text_of(code);
}

const char* oc_last_error(void) {
  return last_error();
}

}  // extern "C"
