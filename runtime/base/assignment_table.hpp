/// assignment_table: hash table by assignment id, for values that are inserted and erased every round.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/base/ids.hpp"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>
namespace mneme {

/// Open addressing with linear probing and no allocation per value. Ids are sequential, so their low bits serve as the
/// hash, and collisions are rare. Erasing closes the gap, so there are no tombstones.
template <class Value>
class assignment_table {
public:
  /// Inserts a value. Invalidates references to other values. @pre `id` is not in the table
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
    place.value = std::move(value); // a value is large, so it is moved only once
    return place.value;
  }
  /// The value of `id`. Returns null if it is not in the table.
  [[nodiscard]] Value* find(assignment_id id) noexcept {
    for (auto at = home_of(id); !slots_.empty() && slots_[at].used; at = next(at))
      if (slots_[at].id == id)
        return &slots_[at].value;
    return nullptr;
  }
  /// The value of `id`. @pre `id` is in the table
  [[nodiscard]] Value& at(assignment_id id) {
    auto* entry = find(id);
    MNEME_CHECK(entry != nullptr, id.value);
    return *entry;
  }
  /// Erases a value. Invalidates references to other values. @pre `id` is in the table
  void erase(assignment_id id) {
    auto gap = home_of(id);
    for (; slots_.at(gap).id != id; gap = next(gap))
      MNEME_CHECK(slots_[gap].used, id.value);
    MNEME_CHECK(slots_[gap].used, id.value);
    for (auto at = next(gap); slots_[at].used; at = next(at))
      if (distance(home_of(slots_[at].id), at) >= distance(gap, at)) { // the probe sequence of this entry includes the
                                                                       // gap
        slots_[gap] = std::move(slots_[at]);
        gap = at;
      }
    slots_[gap].used = false;
    auto& left = slots_[gap].value;
    std::destroy_at(&left); // constructed in place, because values are large
    std::construct_at(&left);
    --size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// Number of slots; at least twice the number of values.
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }
  /// All ids in the table, ascending.
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

  std::vector<slot> slots_; // the size is a power of two
  std::size_t size_ = 0;
};

} // namespace mneme
