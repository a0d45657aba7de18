#include "runtime/data/partition_kinds.hpp"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>
namespace mneme {
namespace {

constexpr std::uint64_t redraws_max = 10'000;
/// Total number of draws (about ten seconds) after which a split counts as impossible.
constexpr std::uint64_t draws_max = 200'000'000;

/// The random stream of a class and attempt. The upper half of its index is the attempt, the lower half the class.
rng_stream class_stream(const task_split& task, std::uint64_t attempt, std::size_t c) {
  rng_key key = task.key;
  key.index = attempt << 32 | c;
  return rng_stream(key);
}

/// Distributes n rows in order, given the shares p. Client k gets the rows from floor(n * (p_0 + ... + p_{k-1})) to the
/// next cut. The last client with a share gets the remainder. `held` counts rows per client.
void deal(const std::vector<row_position>& rows, const std::vector<double>& shares, owners& dealt,
          std::vector<std::uint64_t>& held) {
  const auto after_last = std::find_if(shares.rbegin(), shares.rend(), [](double share) { return share > 0.0; });
  const auto sharers = static_cast<std::uint32_t>(shares.rend() - after_last);
  double cumulative = 0.0;
  std::size_t next = 0;
  for (std::uint32_t client = 0; client < sharers; ++client) {
    cumulative += shares[client];
    const auto cut = static_cast<std::size_t>(cumulative * static_cast<double>(rows.size()));
    const auto end = client + 1 == sharers ? rows.size() : std::min(cut, rows.size());
    for (; next < end; ++next) {
      dealt[rows[next]] = client;
      ++held[client];
    }
  }
}

/// Sets the shares of clients that have their fair number of rows to 0, and normalizes the others. Returns false if the
/// remaining shares sum to 0 in double precision.
bool cap(std::vector<double>& shares, const std::vector<std::uint64_t>& held, std::size_t rows) {
  double sum = 0.0;
  for (std::size_t client = 0; client < shares.size(); ++client) {
    if (held[client] * shares.size() >= rows)
      shares[client] = 0.0;
    sum += shares[client];
  }
  for (double& share : shares)
    share /= sum;
  return sum > 0.0;
}

/// One attempt at dirichlet-capped. Returns an empty list if a client would have no rows.
owners capped_attempt(const task_split& task, std::uint64_t attempt) {
  owners dealt(task.rows);
  std::vector<std::uint64_t> held(task.clients);
  std::size_t left = task.rows;
  for (std::size_t c = 0; c < task.by_class.size(); ++c) {
    auto rows = task.by_class[c];
    if (rows.empty())
      continue;
    auto stream = class_stream(task, attempt, c);
    stream.shuffle(std::span(rows));
    auto shares = stream.dirichlet(task.clients, task.how.beta);
    if (!cap(shares, held, task.rows))
      return {};
    deal(rows, shares, dealt, held);
    left -= rows.size();
    if (static_cast<std::size_t>(std::count(held.begin(), held.end(), 0U)) > left)
      return {}; // there are more clients without rows than remaining rows
  }
  return dealt;
}

std::string described(const task_split& task) {
  std::ostringstream text;
  text << "beta = " << task.how.beta << ", clients = " << task.clients << ", rows = " << task.rows << " in "
       << task.task_name;
  return text.str();
}

} // namespace

owners split_dirichlet(const task_split& task) {
  owners dealt(task.rows);
  std::vector<std::uint64_t> held(task.clients);
  for (std::size_t c = 0; c < task.by_class.size(); ++c) {
    auto rows = task.by_class[c];
    if (rows.empty())
      continue;
    auto stream = class_stream(task, 0, c);
    stream.shuffle(std::span(rows));
    deal(rows, stream.dirichlet(task.clients, task.how.beta), dealt, held);
  }
  return dealt;
}

// The partition of TARGET, LANDER and STSA. With N rows and K clients, a client that already has at least N / K rows
// gets none of the next class. A split that leaves a client without rows is drawn again. Deviation: in the official
// code the last client gets the rounding remainder even if its share is 0.
expected<owners> split_dirichlet_capped(const task_split& task, const std::string& where) {
  if (task.rows < task.clients)
    return failed(where, "dirichlet-capped gives every client a row, and there are fewer rows than clients (" +
                             described(task) +
                             "); expected a smaller clients.count, more rows, or kind = \"dirichlet\"");
  const auto draws = std::uint64_t{task.clients} * std::max<std::size_t>(1, task.by_class.size());
  const auto attempts = 1 + std::clamp<std::uint64_t>(draws_max / draws, 100, redraws_max);
  for (std::uint64_t attempt = 0; attempt < attempts; ++attempt)
    if (auto dealt = capped_attempt(task, attempt); !dealt.empty())
      return dealt;
  return failed(where, "dirichlet-capped left a client without rows in each of " + std::to_string(attempts - 1) +
                           " redraws (" + described(task) +
                           "); expected a larger partition.beta, a smaller clients.count, more rows, or kind = "
                           "\"dirichlet\", which allows empty clients");
}

} // namespace mneme
