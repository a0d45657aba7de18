#include "runtime/storage/client_memory_store.hpp"
#include "runtime/storage/memory_file.hpp"
#include <algorithm>
namespace mneme {

client_memory_store::client_memory_store(std::int64_t bytes_max) : bytes_max_(bytes_max) {}
client_memory_store::client_memory_store(client_memory_store&&) noexcept = default;
client_memory_store& client_memory_store::operator=(client_memory_store&&) noexcept = default;
client_memory_store::~client_memory_store() = default;

memory_ref client_memory_store::find(client_id client) {
  if (is_in_file(client))
    return file_->read(client);
  const auto entry = held_.find(client);
  return entry == held_.end() ? nullptr : entry->second.memory;
}

void client_memory_store::put(client_id client, memory_ref memory) {
  erase(client);
  if (!memory)
    return;
  held_bytes_ += memory->bytes();
  held_[client] = {.memory = std::move(memory), .put_at = ++puts_};
  if (bytes_max_ == 0)
    return;
  waiting_.emplace_back(client, puts_);
  if (held_bytes_ > bytes_max_)
    spill();
}

void client_memory_store::erase(client_id client) {
  erase_from_memory(client);
  erase_from_file(client);
}

void client_memory_store::erase_from_memory(client_id client) {
  const auto entry = held_.find(client);
  if (entry == held_.end())
    return;
  held_bytes_ -= entry->second.memory->bytes();
  held_.erase(entry);
}

void client_memory_store::erase_from_file(client_id client) {
  if (!is_in_file(client))
    return;
  file_->erase(client);
  filed_[client.value] = false;
  --in_file_;
}

/// Moves memories to the file until seven eighths of the limit are used, so that one transaction writes many of them.
void client_memory_store::spill() {
  if (!file_)
    file_ = std::make_unique<memory_file>();
  file_->begin();
  while (held_bytes_ > bytes_max_ - bytes_max_ / 8 && !waiting_.empty()) {
    const auto [client, put_at] = waiting_.front();
    waiting_.pop_front();
    const auto entry = held_.find(client);
    if (entry == held_.end() || entry->second.put_at != put_at)
      continue; // the entry is outdated: its memory was replaced or erased
    file_->write(client, *entry->second.memory);
    erase_from_memory(client);
    filed_.resize(std::max<std::size_t>(filed_.size(), client.value + std::size_t{1}));
    filed_[client.value] = true;
    ++in_file_;
  }
  file_->commit();
}

void client_memory_store::each(const std::function<void(client_id, const memory_ref&)>& act) {
  std::vector<client_id> clients;
  for (const auto& [client, memory] : held_)
    clients.push_back(client);
  for (std::uint32_t c = 0; c < filed_.size(); ++c)
    if (filed_[c])
      clients.push_back({c});
  std::sort(clients.begin(), clients.end());
  for (const auto client : clients)
    act(client, find(client));
}

} // namespace mneme
