/// assignment_table: values by assignment id, for the many that come and go every round.
#pragma once
#include "runtime/base/check.hpp"
#include "runtime/base/ids.hpp"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>
namespace mneme {

/// A hash table without a node per value. Ids are handed out in sequence, so their low bits are the hash: those at
/// work lie side by side and hardly ever collide. Linear probing; erasing closes the gap, so nothing wears out.
template <class Value>
class assignment_table {
public:
  /// @pre `id` is not in the table. References to other values do not survive it.
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
    place.value = std::move(value); // values are large: they move once
    return place.value;
  }
  /// Null if there is none.
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
  /// @pre `id` is in the table. References to other values do not survive it.
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
    std::destroy_at(&left); // values are large: an empty one is made in place, not moved there
    std::construct_at(&left);
    --size_;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  /// How many there is room for, at least twice the size.
  [[nodiscard]] std::size_t slots() const noexcept { return slots_.size(); }
  /// Ascending.
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

  std::vector<slot> slots_; // a power of two of them
  std::size_t size_ = 0;
};

} // namespace mneme
