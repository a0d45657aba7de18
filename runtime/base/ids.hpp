/// Ids: typed numbers; ids of different kinds cannot be mixed.
#pragma once
#include <compare>
#include <cstdint>
#include <functional>
namespace mneme {

template <class Tag, class Rep = std::uint32_t>
struct id_of {
  Rep value = 0;
  auto operator<=>(const id_of&) const = default;
};

/// Clients count from 0.
using client_id = id_of<struct client_tag>;
/// Tasks count from 0 in the program, and from 1 in files and output.
using task_id = id_of<struct task_tag>;
/// Rounds of the whole run, counted like tasks.
using round_id = id_of<struct round_tag>;
/// One client's work on one broadcast, numbered from 0 in virtual order.
using assignment_id = id_of<struct assignment_tag, std::uint64_t>;
/// A fixed subset of the clients. Batches never cross shards, so results do not depend on nodes.
using shard_id = id_of<struct shard_tag>;

/// One job of one assignment. Does not depend on the order of arrival, so it sorts equally in every run.
struct job_id {
  assignment_id assignment{};
  std::uint32_t stage = 0; ///< Number of earlier stages of the round.
  std::uint32_t step = 0;  ///< Position within the stage.
  auto operator<=>(const job_id&) const = default;
};

} // namespace mneme

template <class Tag, class Rep>
struct std::hash<mneme::id_of<Tag, Rep>> {
  std::size_t operator()(mneme::id_of<Tag, Rep> x) const noexcept { return std::hash<Rep>{}(x.value); }
};
