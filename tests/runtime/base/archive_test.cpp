#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h> // before Catch2, whose CHECK must be the last definition

#include "runtime/base/archive.hpp"
#include "runtime/base/digest.hpp"
#include "runtime/base/virtual_clock.hpp"
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
using namespace mneme;
using Catch::Matchers::ContainsSubstring;

namespace {

archive::buffer bytes_of(const archive& saved) {
  auto bytes = saved.contents();
  CHECK(bytes->size() == saved.size());
  return bytes;
}

archive reading(const archive::buffer& bytes) { return {bytes, 0, bytes->size()}; }

/// Restores `value` from an archive that contains nothing else.
template <class T>
T round_trip(T value) {
  archive saved;
  saved(value);
  auto loaded = reading(bytes_of(saved));
  T back{};
  loaded(back);
  loaded.expect_end();
  return back;
}

struct island {
  std::string name{};
  tensors_ref treasure{};
  void persist(archive& state) { state.section("island")(name)(treasure); }
};

/// Error of reading as a T; "" if there is none.
template <class T>
std::string complaint(const archive::buffer& bytes) {
  auto loaded = reading(bytes);
  T value{};
  try {
    loaded(value);
    loaded.expect_end();
    return "";
  } catch (const archive_error& e) {
    return e.what();
  }
}

template <class... Values>
archive::buffer written(Values... values) {
  archive saved;
  (saved(values), ...);
  return bytes_of(saved);
}

} // namespace

TEST_CASE("numbers, strings, times and containers survive save and load") {
  CHECK(round_trip(-7) == -7);
  CHECK(round_trip(0.1) == 0.1);
  CHECK(round_trip(true));
  CHECK(round_trip(std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(round_trip(client_id{9}) == client_id{9});
  CHECK(round_trip(virtual_time{virtual_duration{5}}) == virtual_time{virtual_duration{5}});
  CHECK(round_trip(std::vector<std::string>{"x", "", "y"}) == std::vector<std::string>{"x", "", "y"});
  CHECK(round_trip(std::map<std::string, std::pair<int, double>>{{"a", {1, 2.0}}}) ==
        std::map<std::string, std::pair<int, double>>{{"a", {1, 2.0}}});
  CHECK(round_trip(std::optional<std::int64_t>{3}) == 3);
  CHECK(round_trip(std::optional<std::int64_t>{}) == std::nullopt);
}

TEST_CASE("loading replaces the previous value") {
  archive saved;
  std::vector<int> few{1};
  std::optional<int> none;
  std::map<std::string, int> small{{"a", 1}};
  saved(few)(none)(small);
  auto loaded = reading(bytes_of(saved));
  std::vector<int> many{4, 5, 6};
  std::optional<int> some = 3;
  std::map<std::string, int> large{{"a", 9}, {"b", 9}};
  loaded(many)(some)(large);
  CHECK(many == few);
  CHECK(some == none);
  CHECK(large == small);
}

TEST_CASE("tensors of every kind keep dtype, shape and bits") {
  for (const auto dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kByte, at::kBool}) {
    CAPTURE(dtype);
    const auto value = at::arange(12).reshape({3, 4}).to(dtype);
    const auto back = round_trip(value);
    CHECK(back.scalar_type() == dtype);
    CHECK(at::equal(back, value));
  }
  CHECK_FALSE(round_trip(at::Tensor()).defined());
  CHECK(round_trip(at::empty({0, 5})).sizes() == at::IntArrayRef({0, 5}));
  CHECK(round_trip(at::scalar_tensor(2.5)).item<double>() == 2.5);
  CHECK(at::equal(round_trip(at::arange(6).reshape({2, 3}).t()), at::arange(6).reshape({2, 3}).t()));
}

TEST_CASE("saving copies a single tensor and shares tensors of a map") {
  auto own = at::zeros({4});
  auto map = std::make_shared<tensor_map>();
  map->put("kept", at::zeros({4}));
  tensors_ref shared = map;
  archive saved;
  saved(own)(shared);
  own.fill_(1.0);
  map->at("kept").fill_(1.0); // writes to an immutable map, to show that the memory is shared
  auto loaded = reading(bytes_of(saved));
  at::Tensor own_back;
  tensors_ref shared_back;
  loaded(own_back)(shared_back);
  CHECK(own_back.sum().item<double>() == 0.0);
  CHECK(shared_back->at("kept").sum().item<double>() == 4.0);
}

TEST_CASE("shared tensors are saved once and shared after loading") {
  const auto big = weights_only(at::ones({1000}));
  std::vector<island> islands{{"a", big}, {"b", nullptr}, {"c", big}, {"d", weights_only(big->at(flat_weights))}};
  auto alone = islands.front();
  archive saved, once;
  saved(islands);
  once(alone);
  CHECK(saved.size() < once.size() + 1000);
  auto loaded = reading(bytes_of(saved));
  std::vector<island> back;
  loaded(back);
  REQUIRE(back.size() == 4);
  CHECK(back[0].treasure == back[2].treasure);
  CHECK(back[1].treasure == nullptr);
  CHECK(at::equal(back[0].treasure->at(flat_weights), at::ones({1000})));
  CHECK(back[3].treasure != back[0].treasure);
  CHECK(back[3].treasure->at(flat_weights).is_same(back[0].treasure->at(flat_weights)));
}

TEST_CASE("a loaded event queue continues in the same order and sequence") {
  struct event {
    int kind = 0;
    void persist(archive& state) { state(kind); }
  };
  event_queue<event> before;
  const auto at = [](int ns) { return virtual_time{virtual_duration{ns}}; };
  for (int i = 0; i < 50; ++i)
    before.push(at(i * 7 % 5), {i}, i % 3 ? precedence::ordinary : precedence::deadline);
  (void)before.pop();
  archive saved;
  saved(before);
  auto loaded = reading(bytes_of(saved));
  event_queue<event> after;
  loaded(after);
  CHECK(after.now() == before.now());
  after.push(at(3), {100});
  before.push(at(3), {100});
  while (!before.empty()) {
    REQUIRE_FALSE(after.empty());
    CHECK(after.pop().kind == before.pop().kind);
  }
  CHECK(after.empty());
}

TEST_CASE("truncated, oversized and mismatched bytes are refused") {
  const auto whole = written(island{.name = "x", .treasure = weights_only(at::ones({3}))});
  for (std::size_t size = 0; size < whole->size(); ++size) {
    CAPTURE(size);
    CHECK(complaint<island>(
              std::make_shared<std::vector<std::byte>>(whole->begin(), whole->begin() + std::ptrdiff_t(size))) != "");
  }
  auto longer = std::make_shared<std::vector<std::byte>>(*whole);
  longer->push_back({});
  CHECK_THAT(complaint<island>(longer), ContainsSubstring("has another 1 bytes"));
  CHECK_THAT(complaint<island>(written(std::string("islet"))), ContainsSubstring("lacks the section 'island'"));
  CHECK_THAT(complaint<bool>(written(std::uint8_t{2})), ContainsSubstring("byte 2"));
}

TEST_CASE("sizes are checked before memory is allocated") {
  constexpr auto huge = std::uint64_t{1} << 60;
  CHECK_THAT(complaint<std::string>(written(huge)), ContainsSubstring("more than its bytes can hold"));
  CHECK_THAT(complaint<std::vector<double>>(written(huge)), ContainsSubstring("more than its bytes can hold"));
  using table = std::map<int, int>;
  CHECK_THAT(complaint<table>(written(huge)), ContainsSubstring("more than its bytes can hold"));
  const auto tensor = [](std::vector<std::int64_t> sizes) {
    return written(static_cast<std::int8_t>(at::kFloat), std::move(sizes), std::uint64_t{0});
  };
  for (const auto& sizes :
       {std::vector<std::int64_t>{std::int64_t{1} << 40}, {-1}, {std::int64_t{1} << 40, std::int64_t{1} << 40}, {3}})
    CHECK_THAT(complaint<at::Tensor>(tensor(sizes)), ContainsSubstring("larger than the remaining bytes"));
  CHECK_THAT(complaint<at::Tensor>(tensor({0, std::int64_t{1} << 40, std::int64_t{1} << 40})), // empty, large strides
             ContainsSubstring("larger than the remaining bytes"));
  CHECK(complaint<at::Tensor>(tensor({2})) == "");
  CHECK_THAT(complaint<at::Tensor>(tensor(std::vector<std::int64_t>(17, 1))), ContainsSubstring("something else"));
  CHECK_THAT(complaint<at::Tensor>(written(std::int8_t{99}, std::vector<std::int64_t>{2}, 0.0)),
             ContainsSubstring("something else"));
  CHECK_THAT(complaint<tensors_ref>(written(std::uint64_t{2})), ContainsSubstring("shared object 2 of 0"));
}

TEST_CASE("plain vectors keep their values and their bound") {
  std::vector<std::uint32_t> values{1, 2, 3};
  archive saved;
  saved.plain(values);
  CHECK(saved.size() == 8 + 12);
  const auto bytes = bytes_of(saved);
  std::vector<std::uint32_t> back;
  reading(bytes).plain(back);
  CHECK(back == values);
  auto cut = archive(bytes, 0, 19);
  CHECK_THROWS_AS(cut.plain(back), archive_error);
}

TEST_CASE("a tensor is replaced only by one of its shape and dtype") {
  auto sums = at::zeros({2, 3});
  archive saved;
  saved(sums).frozen(sums);
  const auto bytes = bytes_of(saved);
  const auto load_into = [&](at::Tensor first, at::Tensor second) { reading(bytes)(first).frozen(second); };
  CHECK_NOTHROW(load_into(at::ones({2, 3}), at::ones({2, 3})));
  CHECK_NOTHROW(load_into({}, {}));
  CHECK_THROWS_WITH(load_into(at::ones({4}), {}), ContainsSubstring("6 numbers where one of 4 was expected"));
  CHECK_THROWS_WITH(load_into({}, at::ones({4})), ContainsSubstring("6 numbers where one of 4 was expected"));
  CHECK_THROWS_AS(load_into(at::ones({2, 3}, at::kDouble), {}), archive_error);
}
