#include "outcore/chem/basis.hpp"

#include <algorithm>
#include <cerrno>
#include <string>

#include "outcore/error.hpp"

namespace outcore::chem {
namespace {

constexpr std::size_t atom_slots = 6, shell_slots = 8;
constexpr std::size_t angular_slot = 1, contraction_slot = 3;  // libcint's ANG_OF, NCTR_OF

}  // namespace

Basis::Basis(std::span<const int> atm, std::span<const int> bas, std::span<const double> env, bool cartesian,
             const Libcint& libcint)
    : libcint_(libcint),
      atm_(atm.begin(), atm.end()),
      bas_(bas.begin(), bas.end()),
      env_(env.begin(), env.end()),
      atoms_(int(atm.size() / atom_slots)) {
  if (atm.size() % atom_slots != 0 || bas.size() % shell_slots != 0 || bas.empty())
    throw Error(EINVAL, {.attempted = "basis", .detail = "atm and bas must be libcint's tables, not empty"});
  if (!libcint.int2e || !libcint.make_optimizer || !libcint.delete_optimizer)
    throw Error(EINVAL, {.attempted = "basis", .detail = "a libcint entry point is missing"});

  first_.push_back(0);
  for (std::size_t at = 0; at < bas_.size(); at += shell_slots) {
    const int l = bas_[at + angular_slot];
    const int size = (cartesian ? (l + 1) * (l + 2) / 2 : 2 * l + 1) * bas_[at + contraction_slot];
    size_.push_back(size);
    first_.push_back(first_.back() + size);
    largest_ = std::max(largest_, size);
  }
  if (shells() > 65535 || functions() > 65535)
    throw Error(EOVERFLOW,
                {.attempted = "basis",
                 .detail = std::to_string(functions()) + " functions in " + std::to_string(shells()) +
                           " shells; at most 65535 of each can be labelled"});

  void* optimizer = nullptr;
  libcint_.make_optimizer(&optimizer, atm_.data(), atoms_, bas_.data(), shells(), env_.data());
  optimizer_ = {optimizer, [release = libcint.delete_optimizer](void* held) { release(&held); }};

  for (int shell = 0; shell < shells(); ++shell) {
    int quartet[4] = {shell, shell, shell, shell};
    const int need = libcint_.int2e(nullptr, nullptr, quartet, atm_.data(), atoms_, bas_.data(), shells(),
                                    env_.data(), optimizer_.get(), nullptr);
    work_size_ = std::max(work_size_, std::size_t(need));
  }
}

}  // namespace outcore::chem
