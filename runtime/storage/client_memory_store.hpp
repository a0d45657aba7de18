/// client_memory_store: what clients remember between rounds, in memory up to a limit and in a file beyond it.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/tensor_map.hpp"
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>
namespace mneme {

class memory_file;

/// Memories that have waited longest go to the file first; what comes back from there has the bits it had. The file has
/// no name and vanishes with the book. What it cannot do throws std::runtime_error saying what and why.
class client_memory_store {
public:
  /// @param bytes_max of tensors held in memory; 0: no limit
  explicit client_memory_store(std::int64_t bytes_max = 0);
  client_memory_store(client_memory_store&&) noexcept;
  client_memory_store& operator=(client_memory_store&&) noexcept;
  ~client_memory_store();

  /// Null: the client remembers nothing.
  [[nodiscard]] memory_ref find(client_id client);
  void put(client_id client, memory_ref memory);
  void erase(client_id client);
  /// Clients that remember something.
  [[nodiscard]] std::size_t size() const noexcept { return held_.size() + in_file_; }
  /// Bytes of tensors in memory, and the number of memories in the file.
  [[nodiscard]] std::int64_t held_bytes() const noexcept { return held_bytes_; }
  [[nodiscard]] std::size_t in_file() const noexcept { return in_file_; }
  /// Every client that remembers something, ascending.
  void each(const std::function<void(client_id, const memory_ref&)>& act);

private:
  struct held {
    memory_ref memory{};
    std::uint64_t put_at = 0; // which put() it was
  };
  [[nodiscard]] bool is_in_file(client_id client) const noexcept {
    return client.value < filed_.size() && filed_[client.value];
  }
  void erase_from_memory(client_id client);
  void erase_from_file(client_id client);
  void spill();

  std::int64_t bytes_max_ = 0, held_bytes_ = 0;
  std::uint64_t puts_ = 0;
  std::unordered_map<client_id, held> held_;
  std::deque<std::pair<client_id, std::uint64_t>> waiting_; // in the order of put(); stale ones are passed over
  std::vector<bool> filed_;                                 // by client
  std::size_t in_file_ = 0;
  std::unique_ptr<memory_file> file_; // made when it is first needed
};

} // namespace mneme
