// Rows of clients that are enrolled in some tasks only.
#include "runtime/population/client_rows.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <map>
using namespace mneme;
using namespace mneme::test;

namespace {

constexpr std::int64_t classes = 47, rows_of_class = 9; // forty of them make four tasks of ten

struct enrolled_rows {
  std::shared_ptr<const task_stream> tasks;
  std::shared_ptr<const partition> split;
  std::unique_ptr<client_rows> rows;

  explicit enrolled_rows(const std::vector<std::string>& table) {
    scenario from;
    from.tasks = {.kind = task_kind::domain_incremental,
                  .count = 4,
                  .transform = task_transform::class_blocks,
                  .classes_per_task = 10};
    from.clients.count = 4;
    from.partition.kind = partition_kind::balanced;
    from.enrolment.kind = enrolment_kind::table;
    from.enrolment.table = table;
    tasks = std::make_shared<const task_stream>(
        make_task_stream(from, hand_made_data(classes, classes * rows_of_class, {1, 1, 1})).value());
    split = make_partition(from, tasks).value();
    rows =
        std::make_unique<client_rows>(tasks, split, std::make_shared<const population>(from), row_visibility::current);
  }
};

const std::vector<std::string> full{"AAAA", "AAAA", "AAAA", "AAAA"}, shrinking{"AAAA", "AAAO", "AAOO", "AOOO"};

} // namespace

TEST_CASE("labels are classes mod 10, and each label of a task is dealt evenly up to one row", "[population]") {
  const enrolled_rows all(full);
  for (std::uint32_t t = 0; t < 4; ++t) {
    std::vector<std::int64_t> joined;
    for (std::uint32_t c = 0; c < 4; ++c) {
      const auto held = all.rows->held({c}, {t});
      CHECK(all.rows->size({c}, {t}) == std::ssize(held));
      joined.insert(joined.end(), held.begin(), held.end());
      std::map<std::int64_t, std::int64_t> of_label;
      for (const auto row : held) {
        const auto original = row % classes;
        CHECK(original / 10 == t);
        CHECK(all.tasks->train->label(row) == original % 10);
        ++of_label[original % 10];
      }
      REQUIRE(of_label.size() == 10);
      for (const auto& [label, count] : of_label)
        CHECK((count == 2 || count == 3)); // 9 rows for 4 clients
      CHECK((held.size() == 22 || held.size() == 23));
    }
    std::sort(joined.begin(), joined.end());
    CHECK(joined == all.tasks->tasks[t].train); // disjoint and complete
  }
}

TEST_CASE("the rows of an absent client belong to no client, and others keep theirs", "[population]") {
  const enrolled_rows all(full), fewer(shrinking);
  for (std::uint32_t t = 0; t < 4; ++t)
    for (std::uint32_t c = 0; c < 4; ++c) {
      CAPTURE(t, c);
      const bool is_there = shrinking[c][t] == 'A';
      CHECK(fewer.rows->held({c}, {t}) == (is_there ? all.rows->held({c}, {t}) : std::vector<std::int64_t>{}));
      CHECK(fewer.rows->size({c}, {t}) == (is_there ? all.rows->size({c}, {t}) : 0));
      CHECK(fewer.rows->view({c}, {t}).size() == fewer.rows->size({c}, {t}));
    }
}
