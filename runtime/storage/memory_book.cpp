#include "runtime/storage/memory_book.hpp"
#include "runtime/storage/memory_file.hpp"
#include <algorithm>
namespace mneme {

memory_book::memory_book(std::int64_t bytes_max) : bytes_max_(bytes_max) {}
memory_book::memory_book(memory_book&&) noexcept = default;
memory_book& memory_book::operator=(memory_book&&) noexcept = default;
memory_book::~memory_book() = default;

memory_ref memory_book::find(client_id who) {
  if (is_in_file(who))
    return file_->read(who);
  const auto found = held_.find(who);
  return found == held_.end() ? nullptr : found->second.what;
}

void memory_book::put(client_id who, memory_ref what) {
  erase(who);
  if (!what)
    return;
  held_bytes_ += what->bytes();
  held_[who] = {.what = std::move(what), .put_at = ++puts_};
  if (bytes_max_ == 0)
    return;
  waiting_.emplace_back(who, puts_);
  if (held_bytes_ > bytes_max_)
    make_room();
}

void memory_book::erase(client_id who) {
  drop_held(who);
  drop_filed(who);
}

void memory_book::drop_held(client_id who) {
  const auto found = held_.find(who);
  if (found == held_.end())
    return;
  held_bytes_ -= found->second.what->bytes();
  held_.erase(found);
}

void memory_book::drop_filed(client_id who) {
  if (!is_in_file(who))
    return;
  file_->erase(who);
  filed_[who.value] = false;
  --in_file_;
}

/// Down to seven eighths of the limit, so that many go in one transaction.
void memory_book::make_room() {
  if (!file_)
    file_ = std::make_unique<memory_file>();
  file_->begin();
  while (held_bytes_ > bytes_max_ - bytes_max_ / 8 && !waiting_.empty()) {
    const auto [who, put_at] = waiting_.front();
    waiting_.pop_front();
    const auto found = held_.find(who);
    if (found == held_.end() || found->second.put_at != put_at)
      continue; // renewed or erased since
    file_->write(who, *found->second.what);
    drop_held(who);
    filed_.resize(std::max<std::size_t>(filed_.size(), who.value + std::size_t{1}));
    filed_[who.value] = true;
    ++in_file_;
  }
  file_->commit();
}

void memory_book::each(const std::function<void(client_id, const memory_ref&)>& act) {
  std::vector<client_id> all;
  for (const auto& [who, one] : held_)
    all.push_back(who);
  for (std::uint32_t c = 0; c < filed_.size(); ++c)
    if (filed_[c])
      all.push_back({c});
  std::sort(all.begin(), all.end());
  for (const auto who : all)
    act(who, find(who));
}

} // namespace mneme
