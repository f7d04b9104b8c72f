#include "crash/disk_model.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace fs = std::filesystem;

namespace crash {
namespace {

using Kind = Operation::Kind;

constexpr std::int64_t sector_bytes = 512;

std::size_t at(std::int64_t offset) {
  return static_cast<std::size_t>(offset);
}

void mix(std::uint64_t& hash, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
}

}  // namespace

// ---- trees

std::uint64_t Tree::hash() const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [path, entry] : entries) {
    mix(hash, path.c_str(), path.size() + 1);
    const std::size_t size = entry.content.size();
    mix(hash, &size, sizeof size);
    mix(hash, entry.content.data(), size);
  }
  return hash;
}

void Tree::write(const std::string& directory) const {
  for (const auto& [path, entry] : entries) {  // a directory comes before what is in it
    const std::string place = directory + "/" + path;
    if (entry.is_directory) {
      fs::create_directory(place);
      continue;
    }
    std::ofstream file(place, std::ios::binary);
    file.write(reinterpret_cast<const char*>(entry.content.data()),
               static_cast<std::streamsize>(entry.content.size()));
    file.close();
    if (!file) throw std::runtime_error("cannot write " + place);
  }
}

// ---- what happens

Disk::Disk() {
  nodes_.push_back({.is_directory = true});
}

Disk::Disk(const std::string& directory) : Disk() {
  scan(directory, root);
}

void Disk::scan(const std::string& directory, int node) {
  std::vector<fs::path> paths;
  for (const auto& each : fs::directory_iterator(directory)) paths.push_back(each.path());
  std::ranges::sort(paths);
  for (const fs::path& path : paths) {
    const int next = next_node();
    nodes_[at(node)].names[path.filename().string()] = next;
    nodes_.push_back({.is_directory = fs::is_directory(path)});
    if (nodes_.back().is_directory) {
      scan(path.string(), next);
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    nodes_.back().content.resize(bytes.size());
    std::ranges::transform(bytes, nodes_.back().content.begin(), [](char each) { return std::byte(each); });
  }
}

/// Which of the operations have reached the disk.
class Disk::Choice {
 public:
  static Choice all() { return {}; }

  explicit Choice(std::mt19937_64& random) : random_(&random) {
    constexpr double shares[] = {0.1, 0.5, 0.9};
    kind_ = static_cast<How>(random() % how_many);
    share_ = shares[random() % std::size(shares)];
  }

  /// Begins with the operations of one file or directory.
  void begin(std::size_t units) {
    if (!random_ || units == 0) return;
    whole_ = chance(0.5);
    one_ = (*random_)() % units;
    unit_ = 0;
  }
  /// Whether the next unit has reached the disk.
  bool next() {
    const std::size_t unit = unit_++;
    switch (kind_) {
      case How::all:
        return true;
      case How::none:
        return false;
      case How::whole_nodes:
        return whole_;
      case How::one_missing:
        return whole_ || unit != one_;
      case How::only_one:
        return !whole_ && unit == one_;
      case How::prefix:
        return unit < one_;
      case How::suffix:
        return unit >= one_;
      case How::random:
        return chance(share_);
    }
    return true;
  }

 private:
  enum class How : std::uint8_t { none, whole_nodes, one_missing, only_one, prefix, suffix, random, all };
  static constexpr std::uint64_t how_many = 8;

  Choice() = default;
  bool chance(double share) { return static_cast<double>((*random_)() >> 11) * 0x1p-53 < share; }

  std::mt19937_64* random_ = nullptr;
  How kind_ = How::all;
  double share_ = 0;
  bool whole_ = true;
  std::size_t one_ = 0, unit_ = 0;
};

void Disk::apply(const Operation& operation) {
  switch (operation.kind) {
    case Kind::make_file:
    case Kind::make_directory:
      if (operation.node != next_node()) throw std::logic_error("numbers of files do not follow each other");
      nodes_.push_back({.is_directory = operation.kind == Kind::make_directory});
      return;
    case Kind::allow:
      allowed_ = operation.states;
      return;
    case Kind::sync: {
      Node& node = nodes_[at(operation.node)];
      Choice all = Choice::all();
      if (node.is_directory)
        node.names = names(node, operation.node, all);
      else
        node.content = content(node, all);
      node.pending.clear();
      return;
    }
    case Kind::write:
    case Kind::size:
    case Kind::punch:
      nodes_[at(operation.node)].pending.push_back(operation);
      return;
    case Kind::rename:
      nodes_[at(operation.from_at)].pending.push_back(operation);
      if (operation.from_at != operation.at) throw std::logic_error("a rename from one directory to another");
      return;
    case Kind::enter:
    case Kind::leave:
      nodes_[at(operation.at)].pending.push_back(operation);
      return;
  }
}

std::size_t Disk::pending() const {
  std::size_t count = 0;
  for (const Node& node : nodes_) count += node.pending.size();
  return count;
}

// ---- what may be found

Bytes Disk::content(const Node& node, Choice& choice) {
  const auto sectors = [](const Operation& each) {
    return (each.offset + static_cast<std::int64_t>(each.data.size()) + sector_bytes - 1) / sector_bytes -
           each.offset / sector_bytes;
  };
  std::size_t units = 0;
  for (const Operation& each : node.pending)
    units += each.kind == Kind::write ? at(sectors(each)) + 1 : std::size_t{1};
  choice.begin(units);
  Bytes bytes = node.content;
  auto size = static_cast<std::int64_t>(bytes.size());
  const auto reach = [&](std::int64_t end) {
    if (std::cmp_less(bytes.size(), end)) bytes.resize(at(end));
  };
  for (const Operation& each : node.pending) {
    if (each.kind == Kind::write) {
      const std::int64_t end = each.offset + static_cast<std::int64_t>(each.data.size());
      for (std::int64_t from = each.offset; from < end;) {
        const std::int64_t next = std::min(end, (from / sector_bytes + 1) * sector_bytes);
        if (choice.next()) {
          reach(next);
          std::copy_n(each.data.begin() + (from - each.offset), next - from, bytes.begin() + from);
        }
        from = next;
      }
      if (choice.next()) size = std::max(size, end);
      continue;
    }
    if (!choice.next()) continue;
    if (each.kind == Kind::size) {
      size = each.offset;
      if (std::cmp_greater(bytes.size(), size)) bytes.resize(at(size));
      continue;
    }
    const std::int64_t end = std::min(each.offset + each.size, static_cast<std::int64_t>(bytes.size()));
    if (each.offset < end) std::fill(bytes.begin() + each.offset, bytes.begin() + end, std::byte{0});
  }
  bytes.resize(at(size));
  return bytes;
}

std::map<std::string, int> Disk::names(const Node& node, int number, Choice& choice) {
  choice.begin(node.pending.size());
  std::map<std::string, int> names = node.names;
  for (const Operation& each : node.pending) {
    if (!choice.next()) continue;
    if (each.kind == Kind::rename && each.from_at == number) {
      if (const auto from = names.find(each.from); from != names.end() && from->second == each.node)
        names.erase(from);
    }
    if (each.kind == Kind::leave)
      names.erase(each.name);
    else
      names[each.name] = each.node;
  }
  return names;
}

void Disk::add(Tree& tree, const std::string& prefix, int number, Choice& choice) const {
  for (const auto& [name, child] : names(nodes_[at(number)], number, choice)) {
    const Node& node = nodes_[at(child)];
    Tree::Entry& entry = tree.entries[prefix + name];
    entry.is_directory = node.is_directory;
    entry.node = child;
    if (node.is_directory)
      add(tree, prefix + name + "/", child, choice);
    else
      entry.content = content(node, choice);
  }
}

Tree Disk::tree(Choice& choice) const {
  Tree tree;
  add(tree, "", root, choice);
  return tree;
}

Tree Disk::live() const {
  Choice all = Choice::all();
  return tree(all);
}

Tree Disk::image(std::mt19937_64& random) const {
  Choice choice(random);
  return tree(choice);
}

}  // namespace crash
