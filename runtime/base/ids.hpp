/// ids: typed numbers. Ids of different kinds cannot be mixed.
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

/// A client, numbered from 0.
using client_id = id_of<struct client_tag>;
/// A task, numbered from 0 in the program and from 1 in files and output.
using task_id = id_of<struct task_tag>;
/// A round of the whole run, numbered from 0 in the program and from 1 in files and output.
using round_id = id_of<struct round_tag>;
/// One client's work on one broadcast, numbered from 0 in order of dispatch.
using assignment_id = id_of<struct assignment_tag, std::uint64_t>;
/// A fixed subset of the clients. A batch contains jobs of one shard only, so results do not depend on nodes.
using shard_id = id_of<struct shard_tag>;

/// One job of an assignment. The id does not depend on the order in which jobs arrive, so jobs have the same order in
/// every run.
struct job_id {
  assignment_id assignment{};
  std::uint32_t stage = 0; ///< Number of earlier stages in the round.
  std::uint32_t step = 0;  ///< Index of the job within the stage.
  auto operator<=>(const job_id&) const = default;
};

} // namespace mneme

template <class Tag, class Rep>
struct std::hash<mneme::id_of<Tag, Rep>> {
  std::size_t operator()(mneme::id_of<Tag, Rep> x) const noexcept { return std::hash<Rep>{}(x.value); }
};
