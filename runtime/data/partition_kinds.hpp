/// partition_kinds: splitting functions of the partition kinds, each for one task.
#pragma once
#include "runtime/data/partition.hpp"
#include <span>
namespace mneme {

/// Index of a row within its task: `task_rows::train[position]`.
using row_position = std::uint32_t;
inline constexpr std::uint32_t no_client = 0xFFFFFFFF;
/// Client of each position of a task, or `no_client`.
using owners = std::vector<std::uint32_t>;

/// One task, as input of the splitting functions.
struct task_split {
  const partition_section& how;
  std::uint32_t clients = 0;
  std::vector<std::vector<row_position>> by_class{}; ///< Positions of each class of the task, ascending.
  std::size_t rows = 0;
  rng_key key{};           ///< Seed, purpose and task; task 0 for every task of a per-run split.
  std::string task_name{}; ///< "task 3", for diagnostics.
};

/// Rows in random order, sizes within 1.
[[nodiscard]] owners split_iid(const task_split& task);
/// Deals each class in turn, continuing where the last class ended: sizes differ by at most 1 per class and in total.
[[nodiscard]] owners split_balanced(const task_split& task);
/// Sorts rows by class, cuts them into clients * shards_per_client pieces whose sizes differ by at most 1, and deals
/// the pieces at random.
[[nodiscard]] expected<owners> split_shards(const task_split& task, const std::string& where);
/// Splits each class by shares drawn from a symmetric Dirichlet distribution over clients.
[[nodiscard]] owners split_dirichlet(const task_split& task);
/// Like split_dirichlet(), but a client with its fair number of rows gets none of the next class, and the split is
/// drawn again while a client has no row.
[[nodiscard]] expected<owners> split_dirichlet_capped(const task_split& task, const std::string& where);

/// Content of a partition file, by task and position.
struct filed_split {
  std::vector<owners> owned{};
  std::vector<std::vector<std::int32_t>> marks{}; ///< The method's column; empty if the method has none.
  std::int64_t drawn_rows = 0;                    ///< Lines with rows that data.test_share selected for testing.
};
[[nodiscard]] expected<filed_split> read_partition_file(const scenario& from, const task_stream& tasks,
                                                        const row_mark_column& marks);

/// Kinds in which a row can have several owners. Nothing is stored; each call draws what it needs.
[[nodiscard]] std::shared_ptr<const partition> make_class_share(const scenario& from,
                                                                std::shared_ptr<const task_stream> tasks);
[[nodiscard]] std::shared_ptr<const partition> make_sampled(const scenario& from,
                                                            std::shared_ptr<const task_stream> tasks);

/// Positions of each class of a task, ascending.
[[nodiscard]] std::vector<std::vector<row_position>> positions_by_class(const task_stream& tasks, task_id task);

/// Stream key of a task; the same for all tasks of a per-run split.
[[nodiscard]] rng_key split_key(const scenario& from, purpose purpose_id, task_id task);

} // namespace mneme
