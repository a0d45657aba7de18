/// partition_kinds: what the kinds of partition share, and how each splits one task.
#pragma once
#include "runtime/data/partition.hpp"
#include <span>
namespace mneme {

/// Index of a row within its task: `task_rows::train[position]`.
using row_position = std::uint32_t;
inline constexpr std::uint32_t no_client = 0xFFFFFFFF;
/// Client of each position of a task, or `nobody`.
using owners = std::vector<std::uint32_t>;

/// One task as the splitters read it.
struct task_split {
  const partition_section& how;
  std::uint32_t clients = 0;
  std::vector<std::vector<row_position>> by_class{}; ///< Positions of each class of the task, ascending.
  std::size_t rows = 0;
  rng_key key{};           ///< Seed, purpose and task; the task is 0 for every task of a per-run split.
  std::string task_name{}; ///< "task 3", for diagnostics.
};

/// Rows in random order, sizes within 1.
[[nodiscard]] owners split_iid(const task_split& task);
/// Each class dealt in turn, going on where the last class ended: sizes within 1 per class and in total.
[[nodiscard]] owners split_balanced(const task_split& task);
/// Rows by class, cut into clients * shards_per_client pieces of sizes within 1, dealt at random.
[[nodiscard]] expected<owners> split_shards(const task_split& task, const std::string& where);
/// Each class cut at shares drawn from a symmetric Dirichlet over clients.
[[nodiscard]] owners split_dirichlet(const task_split& task);
/// The same; a client with its fair number of rows gets none of the next class, and while a client
/// has no row at all, everything is drawn again.
[[nodiscard]] expected<owners> split_dirichlet_capped(const task_split& task, const std::string& where);

/// What a CSV file says, task by task and position by position.
struct filed_split {
  std::vector<owners> owned{};
  std::vector<std::vector<std::int32_t>> marks{}; ///< The method's column; empty where the method needs none.
  std::int64_t drawn_rows = 0; ///< Lines of rows that data.test_share has drawn for the test: no client holds them.
};
[[nodiscard]] expected<filed_split> read_partition_file(const scenario& from, const task_stream& tasks,
                                                        const row_mark_column& marks);

/// Kinds that give a row to several clients; nothing is stored, a call draws what it needs.
[[nodiscard]] std::shared_ptr<const partition> make_class_share(const scenario& from,
                                                                std::shared_ptr<const task_stream> tasks);
[[nodiscard]] std::shared_ptr<const partition> make_sampled(const scenario& from,
                                                            std::shared_ptr<const task_stream> tasks);

/// Positions of each class of a task, ascending.
[[nodiscard]] std::vector<std::vector<row_position>> positions_by_class(const task_stream& tasks, task_id task);

/// The stream key of a task: the same for all tasks of a per-run split.
[[nodiscard]] rng_key split_key(const scenario& from, purpose purpose_id, task_id task);

} // namespace mneme
