#include "transport/remote_wake_up.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/errqueue.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <utility>

#include "base/start_thread.hpp"

namespace outcore::transport {
namespace {

constexpr std::chrono::milliseconds awake{2};
constexpr int sure_refusals = 3;

/// It wraps around after half a second; at worst, a wake-up is then left out.
std::uint8_t now_in_units() noexcept {
  return static_cast<std::uint8_t>(std::chrono::steady_clock::now().time_since_epoch() / awake);
}

sockaddr_in ipv4(std::uint32_t host, std::uint16_t port) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = host;
  address.sin_port = port;
  return address;
}

std::uint32_t host_of(const sockaddr* address) noexcept {
  return reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr;
}

/// Fills in addresses of this host, and the masks of their networks; only the loopback address if there is no
/// network.
void find_hosts(std::array<std::uint32_t, 4>& hosts, std::array<std::uint32_t, 4>& masks) {
  ifaddrs* all = nullptr;
  std::size_t found = 0;
  if (getifaddrs(&all) == 0) {
    const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(all, &freeifaddrs);
    for (const ifaddrs* each = all; each && found < hosts.size(); each = each->ifa_next) {
      const bool is_up = (each->ifa_flags & IFF_UP) != 0 && (each->ifa_flags & IFF_LOOPBACK) == 0;
      if (!is_up || !each->ifa_addr || !each->ifa_netmask || each->ifa_addr->sa_family != AF_INET) continue;
      hosts[found] = host_of(each->ifa_addr);
      masks[found++] = host_of(each->ifa_netmask);
    }
  }
  if (found == 0) hosts[0] = htonl(INADDR_LOOPBACK);
}

}  // namespace

RemoteWakeUp::RemoteWakeUp() {
  socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  stop_ = eventfd(0, EFD_CLOEXEC);
  sockaddr_in address = ipv4(htonl(INADDR_ANY), 0);
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || stop_ < 0 || bind(socket_, plain, size) != 0 || getsockname(socket_, plain, &size) != 0)
    return;
  const int wanted = 1;
  (void)setsockopt(socket_, IPPROTO_IP, IP_RECVERR, &wanted, sizeof wanted);
  if (getrandom(&mine_.word, sizeof mine_.word, GRND_NONBLOCK) != sizeof mine_.word) return;
  mine_.port = address.sin_port;
  find_hosts(mine_.hosts, masks_);
}

RemoteWakeUp::~RemoteWakeUp() {
  if (thread_.joinable()) {
    eventfd_write(stop_, 1);
    thread_.join();
  }
  if (socket_ >= 0) close(socket_);
  if (stop_ >= 0) close(stop_);
}

void RemoteWakeUp::meet(std::span<const Address> all, int rank) {
  rank_ = rank;
  const auto first = std::ranges::find_if(all, [](const Address& each) { return each.port != 0; });
  if (first != all.end()) mine_.word = first->word;
  peers_ = std::vector<Peer>(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    peers_[i].host = way_to(all[i]);
    peers_[i].port = all[i].port;
    for (auto& met : peers_[i].met) met = static_cast<std::uint8_t>(now_in_units() - 128);  // long ago
  }
}

/// An address in a network of both hosts, else any. An address that both hosts have (such as that of a bridge
/// for containers) is no path between them, unless all their addresses are equal: then they are one host.
std::uint32_t RemoteWakeUp::way_to(const Address& its) const noexcept {
  if (mine_.port == 0 || its.port == 0) return 0;
  if (its.hosts == mine_.hosts) return its.hosts[0];
  std::uint32_t any = 0;
  for (const std::uint32_t host : its.hosts) {
    if (host == 0 || std::ranges::find(mine_.hosts, host) != mine_.hosts.end()) continue;
    for (std::size_t i = 0; i < mine_.hosts.size(); ++i)
      if (mine_.hosts[i] != 0 && ((mine_.hosts[i] ^ host) & masks_[i]) == 0) return host;
    if (any == 0) any = host;
  }
  return any;
}

void RemoteWakeUp::wake(int process, Reason reason) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(process)];
  if (peer.host == 0) return;
  const std::uint8_t now = now_in_units();
  const std::uint8_t before =
      peer.met[static_cast<std::size_t>(reason)].exchange(now, std::memory_order_relaxed);
  if (static_cast<std::uint8_t>(now - before) <= 1) return;
  const bool unsure = !peer.answered;
  send({.word = mine_.word, .reason = reason, .wants_answer = unsure, .rank = rank_}, peer.host, peer.port);
}

/// The first attempt may only return the error of an earlier datagram.
void RemoteWakeUp::send(const Datagram& datagram, std::uint32_t host, std::uint16_t port) noexcept {
  const sockaddr_in to = ipv4(host, port);
  for (int attempt = 0; attempt < 2; ++attempt)
    if (sendto(socket_, &datagram, sizeof datagram, MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&to), sizeof to) == sizeof datagram)
      return;
}

/// Without an earlier answer, a refusal may come from a firewall.
bool RemoteWakeUp::alive(int process) noexcept {
  const Peer& peer = peers_[static_cast<std::size_t>(process)];
  if (peer.host == 0 || process == rank_) return true;
  if (peer.answered && peer.refusals >= sure_refusals) return false;
  send({.word = mine_.word, .reason = asks, .wants_answer = 1, .rank = rank_}, peer.host, peer.port);
  return true;
}

void RemoteWakeUp::met(int process, Reason reason) noexcept {
  Peer& peer = peers_[static_cast<std::size_t>(process)];
  peer.met[static_cast<std::size_t>(reason)].store(now_in_units(), std::memory_order_relaxed);
  peer.refusals.store(0, std::memory_order_relaxed);
}

void RemoteWakeUp::listen() {
  std::array<pollfd, 2> watched{{{socket_, POLLIN, 0}, {stop_, POLLIN, 0}}};
  for (;;) {
    if (poll(watched.data(), watched.size(), -1) < 0) continue;  // no signals come here
    if (watched[1].revents != 0) return;
    if ((watched[0].revents & POLLERR) != 0) hear_refusals();
    if ((watched[0].revents & POLLIN) != 0) hear();
  }
}

void RemoteWakeUp::hear() {
  Datagram datagram;
  sockaddr_in from{};
  socklen_t size = sizeof from;
  if (recvfrom(socket_, &datagram, sizeof datagram, MSG_DONTWAIT | MSG_TRUNC,
               reinterpret_cast<sockaddr*>(&from), &size) != sizeof datagram ||
      datagram.word != mine_.word || datagram.rank < 0 || datagram.rank >= static_cast<int>(peers_.size()))
    return;
  Peer& peer = peers_[static_cast<std::size_t>(datagram.rank)];
  peer.refusals = 0;
  if (datagram.reason == answers) peer.answered = true;
  if (datagram.wants_answer != 0)
    send({.word = mine_.word, .reason = answers, .rank = rank_}, from.sin_addr.s_addr, from.sin_port);
  const std::lock_guard lock(mutex_);
  for (const auto& [number, listener] : listeners_)
    if (listener.first == datagram.reason) listener.second();
}

/// Reads the replies of hosts about datagrams that no process took.
void RemoteWakeUp::hear_refusals() {
  for (;;) {
    sockaddr_in to{};
    alignas(cmsghdr) std::array<char, 512> control{};
    msghdr message{};
    message.msg_name = &to;
    message.msg_namelen = sizeof to;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    if (recvmsg(socket_, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
    for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
      if (each->cmsg_level != IPPROTO_IP || each->cmsg_type != IP_RECVERR) continue;
      sock_extended_err error{};
      std::memcpy(&error, CMSG_DATA(each), sizeof error);
      if (error.ee_errno != ECONNREFUSED) continue;
      for (Peer& peer : peers_)
        if (peer.host == to.sin_addr.s_addr && peer.port == to.sin_port) ++peer.refusals;
    }
  }
}

RemoteWakeUp::Listener::Listener(RemoteWakeUp& wake_up, Reason reason, std::function<void()> heard)
    : wake_up_(wake_up) {
  const std::lock_guard lock(wake_up.mutex_);
  if (wake_up.mine_.port != 0 && !wake_up.thread_.joinable())
    wake_up.thread_ = start_thread("outcore-wake-up", [&wake_up] { wake_up.listen(); });
  number_ = wake_up.next_listener_++;
  wake_up.listeners_.emplace(number_, std::pair(reason, std::move(heard)));
}

RemoteWakeUp::Listener::~Listener() {
  const std::lock_guard lock(wake_up_.mutex_);
  wake_up_.listeners_.erase(number_);
}

}  // namespace outcore::transport
