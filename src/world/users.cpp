#include "world/users.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace outcore::world {
namespace {

std::mutex mutex;
std::map<const World*, std::vector<std::weak_ptr<User>>> users;

}  // namespace

void add_user(const World& world, const std::shared_ptr<User>& user) {
  const std::lock_guard lock(mutex);
  auto& all = users[&world];
  std::erase_if(all, [](const auto& each) { return each.expired(); });
  all.push_back(user);
}

void finish_users(const World& world) noexcept {
  std::vector<std::weak_ptr<User>> all;
  {
    const std::lock_guard lock(mutex);
    if (auto found = users.extract(&world)) all = std::move(found.mapped());
  }
  for (const auto& each : all)
    if (const auto user = each.lock()) user->finish();
}

}  // namespace outcore::world
