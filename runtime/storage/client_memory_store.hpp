/// client_memory_store: client memories between rounds, in RAM up to a limit and in a file beyond it.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/tensor_map.hpp"
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>
namespace mneme {

class memory_file;

/// Memories move to the file in the order in which they were stored. Their bits do not change. The file has no name and
/// is deleted with this object. Failures throw std::runtime_error.
class client_memory_store {
public:
  /// @param bytes_max limit in bytes for tensors in RAM; 0: no limit
  explicit client_memory_store(std::int64_t bytes_max = 0);
  client_memory_store(client_memory_store&&) noexcept;
  client_memory_store& operator=(client_memory_store&&) noexcept;
  ~client_memory_store();

  /// The client's memory. Returns null if it has none.
  [[nodiscard]] memory_ref find(client_id client);
  /// Inserts or replaces a client's memory.
  void put(client_id client, memory_ref memory);
  void erase(client_id client);
  /// Number of clients that have a memory.
  [[nodiscard]] std::size_t size() const noexcept { return held_.size() + in_file_; }
  /// Bytes of the tensors in RAM.
  [[nodiscard]] std::int64_t held_bytes() const noexcept { return held_bytes_; }
  [[nodiscard]] std::size_t in_file() const noexcept { return in_file_; }
  /// Calls `act` for every client that has a memory, in ascending order.
  void each(const std::function<void(client_id, const memory_ref&)>& act);

private:
  struct held {
    memory_ref memory{};
    std::uint64_t put_at = 0; // sequence number of the put() call
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
  std::deque<std::pair<client_id, std::uint64_t>> waiting_; // in put() order; outdated entries are skipped
  std::vector<bool> filed_;                                 // indexed by client; true if the memory is in the file
  std::size_t in_file_ = 0;
  std::unique_ptr<memory_file> file_; // created on first use
};

} // namespace mneme
