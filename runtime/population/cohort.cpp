#include "runtime/population/cohort.hpp"
#include "runtime/base/bounded_number_set.hpp"
#include <algorithm>
namespace mneme {
namespace {

constexpr std::int64_t listed_max = 4096; // up to this number of clients, listing all clients is cheaper than rejection

std::vector<client_id> by_rejection(rng_stream& stream, std::int64_t clients, std::int64_t size,
                                    const std::function<bool(client_id)>& available) {
  std::vector<client_id> drawn;
  bounded_number_set members(static_cast<std::size_t>(size));
  const auto attempts = 8 * size + 64;
  for (std::int64_t i = 0; i < attempts && std::ssize(drawn) < size; ++i) {
    const client_id client{static_cast<std::uint32_t>(stream.below(static_cast<std::uint64_t>(clients)))};
    if (available(client) && members.insert(client.value))
      drawn.push_back(client);
  }
  return drawn;
}

std::vector<client_id> by_listing(rng_stream& stream, std::int64_t clients, std::int64_t size,
                                  const std::function<bool(client_id)>& available) {
  std::vector<client_id> ids;
  for (std::uint32_t c = 0; c < clients; ++c)
    if (available({c}))
      ids.push_back({c});
  if (std::ssize(ids) <= size)
    return ids;
  for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) // these are the first steps of the Fisher-Yates
                                                                   // shuffle
    std::swap(ids[i], ids[i + stream.below(ids.size() - i)]);
  ids.resize(static_cast<std::size_t>(size));
  return ids;
}

} // namespace

std::vector<client_id> draw_cohort(const rng_key& key, std::int64_t clients, std::int64_t size,
                                   const std::function<bool(client_id)>& available) {
  rng_stream stream(key);
  std::vector<client_id> drawn;
  if (clients > listed_max && size < clients / 8)
    drawn = by_rejection(stream, clients, size, available);
  if (std::ssize(drawn) < size) // too few clients are available; these draws are discarded
    drawn = by_listing(stream, clients, size, available);
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

} // namespace mneme
