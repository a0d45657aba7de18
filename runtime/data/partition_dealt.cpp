#include "runtime/data/partition_kinds.hpp"
#include <numeric>
namespace mneme {
namespace {

// Stream indices within a task. Draws for a class use the class number as index; all other draws use these.
constexpr std::uint64_t index_of_clients = 0xFFFFFFFF, index_of_rows = 0xFFFFFFFE, index_of_shards = 0xFFFFFFFD;

/// The numbers 0 to n - 1 in random order.
std::vector<std::uint32_t> shuffled(std::uint32_t n, rng_key key, std::uint64_t index) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  key.index = index;
  rng_stream stream(key);
  stream.shuffle(std::span(order));
  return order;
}

/// A random order of clients for each task, so that remainders do not always go to the same clients.
std::vector<std::uint32_t> order_of_clients(const task_split& task) {
  return shuffled(task.clients, task.key, index_of_clients);
}

} // namespace

owners split_iid(const task_split& task) {
  const auto clients = order_of_clients(task);
  const auto rows = shuffled(static_cast<std::uint32_t>(task.rows), task.key, index_of_rows);
  owners dealt(task.rows);
  for (std::size_t i = 0; i < rows.size(); ++i)
    dealt[rows[i]] = clients[i % clients.size()];
  return dealt;
}

owners split_balanced(const task_split& task) {
  const auto clients = order_of_clients(task);
  owners dealt(task.rows);
  std::size_t turn = 0;
  rng_key key = task.key;
  for (key.index = 0; key.index < task.by_class.size(); ++key.index) {
    auto rows = task.by_class[key.index];
    rng_stream stream(key);
    stream.shuffle(std::span(rows));
    for (const row_position row : rows)
      dealt[row] = clients[turn++ % clients.size()];
  }
  return dealt;
}

// McMahan et al. (2017), section 3, "pathological non-IID".
expected<owners> split_shards(const task_split& task, const std::string& where) {
  std::vector<row_position> sorted;
  sorted.reserve(task.rows);
  for (const auto& rows : task.by_class)
    sorted.insert(sorted.end(), rows.begin(), rows.end());
  const auto pieces = std::uint64_t{task.clients} * static_cast<std::uint64_t>(task.how.shards_per_client);
  if (pieces >= no_client)
    return failed(where, std::to_string(task.clients) + " clients with " + std::to_string(task.how.shards_per_client) +
                             " shards each need " + std::to_string(pieces) + " shards of " + std::to_string(task.rows) +
                             " rows (" + task.task_name + "); expected fewer than 2^32");
  const auto dealt = shuffled(static_cast<std::uint32_t>(pieces), task.key, index_of_shards);
  owners owner_of_rows(task.rows);
  for (std::uint64_t piece = 0; piece < pieces; ++piece)
    for (std::uint64_t i = piece * sorted.size() / pieces; i < (piece + 1) * sorted.size() / pieces; ++i)
      owner_of_rows[sorted[i]] = dealt[piece] % task.clients;
  return owner_of_rows;
}

} // namespace mneme
