#include "outcore/error.hpp"

#include <atomic>

namespace outcore {
namespace {

std::atomic<int> g_rank{0};
std::atomic<int> g_count{1};

std::string compose(int errno_value, const ErrorContext& context, int rank) {
  std::string text;
  if (process_count() > 1) text += "rank " + std::to_string(rank) + ": ";
  text += context.attempted;
  if (context.size_bytes >= 0) text += " of " + std::to_string(context.size_bytes) + " bytes";
  if (context.offset >= 0) text += " at offset " + std::to_string(context.offset);
  if (!context.path.empty())
    text += (context.size_bytes >= 0 || context.offset >= 0 ? " of " : " ") + context.path;
  if (errno_value <= 0) return context.detail.empty() ? text : text + ": " + context.detail;
  text += ": " + std::generic_category().message(errno_value);
  if (!context.detail.empty()) text += " (" + context.detail + ")";
  return text;
}

}  // namespace

Error::Error(int errno_value, ErrorContext context)
    : Error(errno_value, std::move(context), process_rank()) {}

Error::Error(int errno_value, ErrorContext context, int rank)
    : std::system_error(errno_value, std::generic_category()),
      context_(std::move(context)),
      message_(compose(errno_value, context_, rank)),
      rank_(rank) {}

void set_process_rank(int rank, int count) noexcept {
  g_rank.store(rank, std::memory_order_relaxed);
  g_count.store(count, std::memory_order_relaxed);
}

int process_rank() noexcept {
  return g_rank.load(std::memory_order_relaxed);
}
int process_count() noexcept {
  return g_count.load(std::memory_order_relaxed);
}

}  // namespace outcore
