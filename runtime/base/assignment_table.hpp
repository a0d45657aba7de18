/// assignment_table: hash table by assignment id, for values that are inserted and erased every round.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/base/ids.hpp"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>
namespace mneme {

/// Open addressing without a node per value. Ids are sequential, so their low bits are the hash and collisions are
/// rare. Linear probing; erasing closes the gap, so no tombstones accumulate.
template <class Value>
class assignment_table {
public:
  /// @pre `id` is not in the table. Invalidates references to other values.
  Value& insert(assignment_id id, Value&& value) {
    if (2 * (size_ + 1) > slots_.size())
      grow();
    auto at = home_of(id);
    for (; slots_[at].used; at = next(at))
      MNEME_CHECK(slots_[at].id != id, id.value);
    ++size_;
    auto& place = slots_[at];
    place.id = id;
    place.used = true;
    place.value = std::move(value); // values are large, so they are moved once
    return place.value;
  }
  /// Null if `id` is not in the table.
  [[nodiscard]] Value* find(assignment_id id) noexcept {
    for (auto at = home_of(id); !slots_.empty() && slots_[at].used; at = next(at))
      if (slots_[at].id == id)
        return &slots_[at].value;
    return nullptr;
  }
  /// @pre `id` is in the table
  [[nodiscard]] Value& at(assignment_id id) {
    auto* entry = find(id);
    MNEME_CHECK(entry != nullptr, id.value);
    return *entry;
  }
  /// @pre `id` is in the table. Invalidates references to other values.
  void erase(assignment_id id) {
    auto gap = home_of(id);
    for (; slots_.at(gap).id != id; gap = next(gap))
      MNEME_CHECK(slots_[gap].used, id.value);
    MNEME_CHECK(slots_[gap].used, id.value);
    for (auto at = next(gap); slots_[at].used; at = next(at))
      if (distance(home_of(slots_[at].id), at) >= distance(gap, at)) { // may move up into the gap
        slots_[gap] = std::move(slots_[at]);
        gap = at;
      }
    slots_[gap].used = false;
    auto& left = slots_[gap].value;
    std::destroy_at(&left); // values are large: an empty one is constructed in place
    std::construct_at(&left);
    --size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Number of slots, at least twice the size.
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }
  /// All ids, ascending.
  [[nodiscard]] std::vector<assignment_id> ids() const {
    std::vector<assignment_id> ids;
    ids.reserve(size_);
    for (const auto& slot : slots_)
      if (slot.used)
        ids.push_back(slot.id);
    std::sort(ids.begin(), ids.end());
    return ids;
  }

private:
  struct slot {
    assignment_id id{};
    bool used = false;
    Value value{};
  };
  [[nodiscard]] std::size_t home_of(assignment_id id) const noexcept { return id.value & (slots_.size() - 1); }
  [[nodiscard]] std::size_t next(std::size_t at) const noexcept { return (at + 1) & (slots_.size() - 1); }
  [[nodiscard]] std::size_t distance(std::size_t from, std::size_t to) const noexcept {
    return (to - from) & (slots_.size() - 1);
  }
  void grow() {
    auto old = std::exchange(slots_, std::vector<slot>(std::max<std::size_t>(16, 2 * slots_.size())));
    size_ = 0;
    for (auto& entry : old)
      if (entry.used)
        insert(entry.id, std::move(entry.value));
  }

  std::vector<slot> slots_; // size is a power of two
  std::size_t size_ = 0;
};

} // namespace mneme
