#include "runtime/data/task_stream.hpp"
#include "tests/support/small_data.hpp"
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <set>
using namespace mneme;
using namespace mneme::test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;
using numbers = std::vector<std::int64_t>;

namespace {

scenario with_tasks(tasks_section tasks) {
  scenario from;
  from.tasks = std::move(tasks);
  for (const char* key : {"count", "classes", "first_classes", "classes_per_task", "transform", "domain_order"})
    from.key_places[std::string("tasks.") + key] = key;
  for (const char* key : {"train_rows", "resize", "crop"})
    from.key_places[std::string("data.") + key] = key;
  return from;
}

} // namespace

TEST_CASE("class-incremental tasks have equal blocks of the class order", "[curriculum]") {
  auto from = with_tasks({.count = 3, .class_order = numbers{4, 1, 0, 5, 2, 3}});
  const auto made = make_task_stream(from, hand_made_data(6, 14));
  REQUIRE(made);
  REQUIRE(made->tasks.size() == 3);
  CHECK(made->classes == 6);
  CHECK(made->tasks[0].classes == class_range{0, 2});
  CHECK(made->tasks[2].classes == class_range{4, 6});
  CHECK(made->tasks[0].train == numbers{1, 4, 7, 10, 13}); // classes 4 and 1: row mod 6
  CHECK(made->tasks[1].train == numbers{0, 5, 6, 11, 12});
  CHECK(made->tasks[2].test == numbers{2, 3});
  CHECK(made->train->label(4) == 0); // label = position in the order
  CHECK(made->train->label(1) == 1);
  CHECK(made->test->label(3) == 5);
  CHECK(made->seen_classes({0}) == class_range{0, 2});
  CHECK(made->seen_classes({2}) == class_range{0, 6});
}

TEST_CASE("the first task may be larger than the rest", "[curriculum]") {
  const auto made = make_task_stream(with_tasks({.count = 6, .first_classes = 5}), hand_made_data(10, 100));
  REQUIRE(made);
  REQUIRE(made->tasks.size() == 6);
  CHECK(made->tasks[0].classes == class_range{0, 5});
  CHECK(made->tasks[0].train.size() == 50);
  CHECK(made->tasks[1].classes == class_range{5, 6});
  CHECK(made->tasks[5].train.size() == 10);
}

TEST_CASE("classes removed by tasks.classes belong to no task and have no label", "[curriculum]") {
  const auto made = make_task_stream(with_tasks({.count = 2, .classes = 4}), hand_made_data(5, 20));
  REQUIRE(made);
  CHECK(made->classes == 4);
  CHECK(made->tasks[0].train.size() + made->tasks[1].train.size() == 16);
  CHECK(made->train->label(4) == -1);
}

TEST_CASE("if classes do not divide evenly, the first tasks get one more", "[curriculum]") {
  const auto sizes_of = [](tasks_section tasks, std::int64_t classes) {
    const auto stream = make_task_stream(with_tasks(std::move(tasks)), hand_made_data(classes, 100));
    REQUIRE(stream);
    numbers sizes;
    std::int64_t low = 0;
    for (const auto& task : stream->tasks) {
      CHECK(task.classes.low == low);
      low = task.classes.high;
      sizes.push_back(task.classes.size());
    }
    CHECK(low == stream->classes);
    return sizes;
  };
  // numpy 2.3: [len(part) for part in numpy.array_split(range(10), 3)], and FACIL's get_loaders(nc_first_task=...)
  CHECK(sizes_of({.count = 3}, 10) == numbers{4, 3, 3});
  CHECK(sizes_of({.count = 4}, 10) == numbers{3, 3, 2, 2});
  CHECK(sizes_of({.count = 4, .first_classes = 2}, 10) == numbers{2, 3, 3, 2});
  CHECK(sizes_of({.count = 3, .classes = 7}, 10) == numbers{3, 2, 2});
  CHECK(sizes_of({.count = 3, .sizes = {3, 3, 4}}, 10) == numbers{3, 3, 4});
  CHECK(sizes_of({.count = 1, .sizes = {10}}, 10) == numbers{10});
}

TEST_CASE("impossible task sizes are refused with a possible value", "[curriculum]") {
  const auto error_of = [](tasks_section tasks, std::int64_t classes) {
    return first_finding(make_task_stream(with_tasks(std::move(tasks)), hand_made_data(classes, 100)));
  };
  CHECK(error_of({.count = 20}, 10) ==
        "count: tasks.count = 20: 10 classes do not give each task one; expected at most 10");
  CHECK(error_of({.count = 2, .first_classes = 12}, 10) ==
        "first_classes: tasks.first_classes = 12: the run has 10 classes; expected fewer");
  CHECK_THAT(error_of({.count = 2, .first_classes = 10}, 10), ContainsSubstring("leaves none for the 1 task after it"));
  CHECK_THAT(error_of({.count = 4, .first_classes = 8}, 10), ContainsSubstring("leaves 2 classes for 3 tasks"));
  CHECK_THAT(error_of({.count = 1, .first_classes = 4}, 10), ContainsSubstring("leaves 6 of 10 classes unused"));
  CHECK(error_of({.count = 1, .first_classes = 10}, 10).empty());
  CHECK_THAT(error_of({.count = 5, .classes = 20}, 10),
             StartsWith("classes: 20 classes requested, but hand-made has 10"));
  CHECK_THAT(error_of({.count = 3, .sizes = {3, 3, 3}}, 10), ContainsSubstring("add up to 9 of 10 classes"));
}

TEST_CASE("domain-incremental tasks follow the order in the scenario", "[curriculum]") {
  auto data = hand_made_data(2, 1);
  data.train = hand_made_split({0, 1, 0, 1, 0, 1}, {0, 0, 1, 1, 2, 2});
  data.test = hand_made_split({0, 1, 0}, {0, 1, 2});
  data.domain_names = {"photo", "sketch", "7"};
  using names = std::vector<std::string>;
  const auto first_rows = [&](word_or_names order, std::int64_t count, std::int64_t seed = 1) {
    auto from = with_tasks({.kind = task_kind::domain_incremental,
                            .count = count,
                            .transform = task_transform::domains,
                            .domain_order = std::move(order)});
    from.seed = seed;
    const auto stream = make_task_stream(from, data);
    REQUIRE(stream);
    numbers rows;
    for (const auto& task : stream->tasks) {
      rows.push_back(task.train.front());
      CHECK(task.test == numbers{task.train.front() / 2});
    }
    return rows;
  };
  CHECK(first_rows("natural", 3) == numbers{0, 2, 4});
  CHECK(first_rows(names{"7", "photo", "sketch"}, 3) == numbers{4, 0, 2});
  CHECK(first_rows(names{"sketch", "7"}, 2) == numbers{2, 4});
  CHECK(first_rows(names{"1", "0"}, 2) == numbers{2, 0}); // no entry is a name, so they are domain numbers
  std::set<numbers> drawn;
  for (std::int64_t seed = 1; seed <= 12; ++seed)
    drawn.insert(first_rows("seeded", 3, seed));
  CHECK(drawn.size() > 2);
  CHECK(first_rows("seeded", 3, 5) == first_rows("seeded", 3, 5));
  const auto error_of = [&](names order, std::int64_t count) {
    return first_finding(make_task_stream(with_tasks({.kind = task_kind::domain_incremental,
                                                      .count = count,
                                                      .transform = task_transform::domains,
                                                      .domain_order = std::move(order)}),
                                          data));
  };
  CHECK(error_of({"photo", "cartoon"}, 2) ==
        "domain_order: tasks.domain_order: unknown domain \"cartoon\"; expected names of \"photo\", \"sketch\", \"7\"");
  CHECK(error_of({"photo", "photo"}, 2) ==
        "domain_order: tasks.domain_order: the domain \"photo\" occurs twice; expected each at most once");
  CHECK_THAT(error_of({"photo"}, 2), ContainsSubstring("the list has 1 of 3 domains, but the run has 2 tasks"));
}

TEST_CASE("a single task has all rows, whatever tasks.count is", "[curriculum]") {
  const auto made = make_task_stream(with_tasks({.kind = task_kind::single, .count = 7}), hand_made_data(3, 10));
  REQUIRE(made);
  REQUIRE(made->tasks.size() == 1);
  CHECK(made->tasks[0].train.size() == 10);
  CHECK(made->tasks[0].classes == class_range{0, 3});
}

TEST_CASE("permuted tasks have all rows, each under its own transform", "[curriculum]") {
  const auto made = make_task_stream(
      with_tasks({.kind = task_kind::domain_incremental, .count = 3, .transform = task_transform::permute}),
      hand_made_data(2, 4));
  REQUIRE(made);
  CHECK(made->tasks[0].train == numbers{0, 1, 2, 3});
  CHECK(made->tasks[2].train == numbers{8, 9, 10, 11});
  CHECK(made->tasks[2].test == numbers{4, 5}); // two test rows
  CHECK(made->tasks[2].classes == class_range{0, 2});
  CHECK(made->train->label(9) == 1);
  REQUIRE(made->train->transforms.size() == 3);
  CHECK(made->train->transforms[0].pixels.empty());
  CHECK(made->train->transforms[1].pixels.size() == 16);
  CHECK(made->test->transforms[2].pixels[7].from == made->train->transforms[2].pixels[7].from);
  CHECK(made->seen_classes({2}) == class_range{0, 2});
}

TEST_CASE("domain tasks follow the data set's domains and cannot outnumber them", "[curriculum]") {
  auto data = hand_made_data(2, 1);
  data.train = hand_made_split({0, 1, 0, 1, 0}, {1, 0, 1, 1, 0});
  data.test = hand_made_split({0, 1}, {0, 1});
  data.domain_names = {"photo", "sketch"};
  tasks_section tasks{.kind = task_kind::domain_incremental, .count = 2, .transform = task_transform::domains};
  const auto made = make_task_stream(with_tasks(tasks), data);
  REQUIRE(made);
  CHECK(made->tasks[0].train == numbers{1, 4});
  CHECK(made->tasks[1].train == numbers{0, 2, 3});
  CHECK(made->tasks[1].test == numbers{1});
  CHECK(made->train->transforms.size() == 1);
  tasks.count = 3;
  CHECK_THAT(first_finding(make_task_stream(with_tasks(tasks), data)),
             StartsWith("count: 3 tasks and hand-made has 2 domains; expected tasks.count <= 2"));
  CHECK_THAT(first_finding(make_task_stream(with_tasks(tasks), hand_made_data(2, 4))),
             ContainsSubstring("has 1 domain; expected tasks.count <= 1, or a data set with several"));
}

TEST_CASE("class-blocks shows new classes under the same labels in each task", "[curriculum]") {
  tasks_section tasks{.kind = task_kind::domain_incremental,
                      .count = 2,
                      .transform = task_transform::class_blocks,
                      .classes_per_task = 3};
  const auto made = make_task_stream(with_tasks(tasks), hand_made_data(7, 14));
  REQUIRE(made);
  CHECK(made->classes == 3);
  CHECK(made->tasks[1].train == numbers{3, 4, 5, 10, 11, 12});
  CHECK(made->tasks[1].classes == class_range{0, 3});
  CHECK(made->train->label(11) == 1); // class 4 mod 3
  CHECK(made->train->label(6) == -1); // beyond 2 * 3
  tasks.count = 3;
  CHECK(first_finding(make_task_stream(with_tasks(tasks), hand_made_data(7, 14))) ==
        "count: 3 tasks of 3 classes are more than the 7 classes of hand-made; expected tasks.count <= 2 or "
        "tasks.classes_per_task <= 2");
  tasks.classes_per_task = 0;
  CHECK_THAT(first_finding(make_task_stream(with_tasks(tasks), hand_made_data(7, 14))),
             StartsWith("classes_per_task: class-blocks needs"));
}

TEST_CASE("domain-incremental tasks without a transform are refused", "[curriculum]") {
  CHECK_THAT(first_finding(make_task_stream(with_tasks({.kind = task_kind::domain_incremental}), hand_made_data(2, 4))),
             StartsWith("transform: domain-incremental tasks differ by a transform and found \"none\""));
}

TEST_CASE("all tasks without rows are reported", "[curriculum]") {
  const auto made = make_task_stream(with_tasks({.count = 3}), hand_made_data(3, 1));
  REQUIRE_FALSE(made);
  REQUIRE(made.error().size() == 2);
  CHECK_THAT(made.error()[1].text, StartsWith("task 3 has no train rows"));
  CHECK(made.error()[1].where == "train_rows");
}

TEST_CASE("pixels are normalized by the constants of their channel, or to [0, 1]", "[curriculum]") {
  auto data = hand_made_data(2, 4, {2, 3, 3});
  data.mean = {0.25, 0.5};
  data.deviation = {0.5, 0.125};
  auto from = with_tasks({.count = 1});
  const auto standard = make_task_stream(from, data);
  REQUIRE(standard);
  const auto& [scale, shift] = std::pair(standard->train->scale, standard->train->shift);
  CHECK(255 * scale[0] + shift[0] == Catch::Approx((1 - 0.25) / 0.5));
  CHECK(51 * scale[1] + shift[1] == Catch::Approx((0.2 - 0.5) / 0.125));
  CHECK(standard->train->shape() == std::array<std::int64_t, 3>{2, 3, 3});
  from.data.normalize = normalization::unit;
  const auto unit = make_task_stream(from, data);
  CHECK(unit->test->scale == std::vector<float>{1 / 255.0F, 1 / 255.0F});
  CHECK(unit->test->shift == std::vector<float>{0, 0});
}

TEST_CASE("pixels are normalized by the statistics of the training rows", "[curriculum]") {
  auto data = hand_made_data(2, 4, {2, 1, 2});
  for (auto* table : {&data.train, &data.test}) {
    table->images.select(1, 0).fill_(51); // all equal: no deviation
    table->images.select(1, 1).select(2, 0).fill_(0);
    table->images.select(1, 1).select(2, 1).fill_(table == &data.train ? 102 : 255);
  }
  auto from = with_tasks({.count = 1});
  from.data.normalize = normalization::measured;
  const auto made = make_task_stream(from, data);
  REQUIRE(made);
  for (const auto* split : {made->train.get(), made->test.get()}) {
    CHECK(51 * split->scale[0] + split->shift[0] == Catch::Approx(0.0).margin(1e-6));
    CHECK(255 * split->scale[0] + split->shift[0] == Catch::Approx(0.8)); // 1 - 0.2, over 1
    CHECK(0 * split->scale[1] + split->shift[1] == Catch::Approx(-1.0));  // (0 - 0.2) / 0.2
    CHECK(102 * split->scale[1] + split->shift[1] == Catch::Approx(1.0));
  }
}

TEST_CASE("rows have the requested image size, and larger sizes are refused", "[curriculum]") {
  auto from = with_tasks({.count = 1});
  from.data.resize = 12;
  from.data.crop = 10;
  const auto made = make_task_stream(from, hand_made_data(2, 4, {2, 3, 6}));
  REQUIRE(made);
  CHECK(made->train->shape() == std::array<std::int64_t, 3>{2, 10, 10});
  CHECK(made->test->shape() == std::array<std::int64_t, 3>{2, 10, 10});
  from.data.crop = 13;
  CHECK(first_finding(make_task_stream(from, hand_made_data(2, 4, {2, 3, 6}))) ==
        "crop: data.crop = 13: the images have 12 x 24 pixels; expected at most 12, or a larger data.resize");
  from.data = {.resize = 1024};
  CHECK(first_finding(make_task_stream(from, hand_made_data(2, 4, {2, 3, 60}))) ==
        "resize: data.resize = 1024: images of 3 x 60 pixels become 1024 x 20480; expected at most 4096 pixels a side");
}
