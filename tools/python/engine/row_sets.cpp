#include "tools/python/engine/row_sets.hpp"
#include "runtime/training/gather.hpp"
#include <ATen/ATen.h>
#include <algorithm>
#include <fmt/format.h>
namespace mneme {

row_owner::row_owner(client_id client, const std::shared_ptr<const client_rows>& known, std::int64_t tasks,
                     task_id task, sample_view shown)
    : client_(client), known_(known), is_of_run_(known != nullptr), tasks_(tasks), task_(task),
      shown_(std::move(shown)) {}

std::string row_owner::name() const { return client_ ? fmt::format("client {}", client_->value) : "the server"; }

bool row_owner::is_same(const row_owner& other) const noexcept {
  return client_ == other.client_ && !known_.owner_before(other.known_) && !other.known_.owner_before(known_);
}

void row_owner::expect_alive() const {
  if (is_of_run_ && known_.expired())
    throw std::invalid_argument("rows of a run were used after its end; keep their row numbers instead");
}

/// Newest task whose visible rows are `shown_`. This is the task of the broadcast, unless that task is hidden from the
/// client.
std::int64_t row_owner::newest_task(const client_rows& known) const {
  const auto shows = [&](std::int64_t task) {
    const auto view = known.view(*client_, {static_cast<std::uint32_t>(task)});
    return view.size() == shown_.size() && (view.size() == 0 || *view.rows == *shown_.rows);
  };
  if (shows(task_.value))
    return task_.value;
  for (auto task = tasks_ - 1; task >= 0; --task)
    if (shows(task))
      return task;
  return -1;
}

const std::vector<std::int64_t>& row_owner::held() const {
  if (held_)
    return *held_;
  auto rows = shown_.rows ? *shown_.rows : std::vector<std::int64_t>{};
  if (const auto known = known_.lock())
    for (auto task = newest_task(*known); task >= 0; --task)
      if (const auto view = known->view(*client_, {static_cast<std::uint32_t>(task)}); view.size() > 0)
        rows.insert(rows.end(), view.rows->begin(), view.rows->end());
  std::sort(rows.begin(), rows.end());
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return held_.emplace(std::move(rows));
}

bool row_owner::has_held(std::int64_t row) const { return std::binary_search(held().begin(), held().end(), row); }

namespace {

/// Converts to int64 [m] on the host. @param what "row numbers" or "positions", for error messages
at::Tensor whole_numbers(const at::Tensor& given, const char* what) {
  if (given.numel() == 0 && given.dim() == 1) // torch converts empty lists to float32
    return at::empty({0}, at::kLong);
  if (!at::isIntegralType(given.scalar_type(), false) || given.dim() != 1)
    throw std::invalid_argument(fmt::format("{} are {} of {} axes; expected whole numbers [m]", what,
                                            c10::toString(given.scalar_type()), given.dim()));
  return given.cpu().to(at::kLong).contiguous();
}

std::vector<std::int64_t> list_of(const at::Tensor& numbers) {
  const auto* const first = numbers.const_data_ptr<std::int64_t>();
  return {first, first + numbers.numel()};
}

row_set set_of(const row_set& from, std::vector<std::int64_t> rows) {
  return {.samples = {.source = from.samples.source,
                      .rows = std::make_shared<const std::vector<std::int64_t>>(std::move(rows))},
          .owner = from.owner};
}

constexpr const char* how_to_name = ".at(positions) takes positions in this set, .numbers contains row numbers";

} // namespace

at::Tensor row_set::numbers() const {
  auto rows = at::empty({samples.size()}, at::kLong);
  if (samples.rows)
    std::copy(samples.rows->begin(), samples.rows->end(), rows.mutable_data_ptr<std::int64_t>());
  return rows;
}

at::Tensor row_set::labels() const {
  if (owner)
    owner->expect_alive();
  auto labels = at::empty({samples.size()}, at::kLong);
  auto* at = labels.mutable_data_ptr<std::int64_t>();
  if (samples.rows)
    for (const auto row : *samples.rows)
      *at++ = samples.source->label(row);
  return labels;
}

at::Tensor row_set::inputs() const {
  if (owner)
    owner->expect_alive();
  if (!samples.source)
    throw std::invalid_argument("the rows belong to no data set, so they have no inputs");
  const auto [channels, height, width] = samples.source->shape();
  auto inputs = at::empty({samples.size(), channels, height, width}, at::kFloat);
  if (samples.size() > 0)
    gather_any(*samples.source, *samples.rows, {}, {}, inputs.mutable_data_ptr<float>());
  return inputs;
}

row_set row_set::pick(nb::handle numbers) const {
  if (owner)
    owner->expect_alive();
  auto rows = list_of(whole_numbers(tensor_of(numbers, "numbers"), "row numbers"));
  if (owner && owner->is_client()) {
    for (const auto row : rows)
      if (!owner->has_held(row))
        throw std::invalid_argument(
            fmt::format("row {} does not belong to {}, which holds {} rows now and {} in the whole run; ctx.rows{}",
                        row, owner->name(), owner->row_visibility(), owner->rows_held(), how_to_name));
    return set_of(*this, std::move(rows));
  }
  auto own = samples.rows ? *samples.rows : std::vector<std::int64_t>{};
  std::sort(own.begin(), own.end());
  for (const auto row : rows)
    if (!std::binary_search(own.begin(), own.end(), row))
      throw std::invalid_argument(
          fmt::format("row {} is not one of the {} rows of this set; {}", row, size(), std::string_view(how_to_name)));
  return set_of(*this, std::move(rows));
}

row_set row_set::at(nb::handle positions) const {
  if (owner)
    owner->expect_alive();
  auto given = tensor_of(positions, "positions");
  if (given.scalar_type() == at::kBool) {
    if (given.dim() != 1 || given.numel() != size())
      throw std::invalid_argument(
          fmt::format("positions are a mask of {} axes and {} bools; expected one bool for each "
                      "of the {} rows",
                      given.dim(), given.numel(), size()));
    given = given.cpu().nonzero().flatten();
  }
  auto chosen = list_of(whole_numbers(given, "positions"));
  for (auto& position : chosen) {
    if (position < -size() || position >= size())
      throw std::invalid_argument(fmt::format(
          "position {} is out of range: {} has {} rows, at 0 to {}; ctx.rows.pick(numbers) selects rows by number",
          position, owner ? owner->name() : "the set", size(), size() - 1));
    position = (*samples.rows)[static_cast<std::size_t>(position < 0 ? position + size() : position)];
  }
  return set_of(*this, std::move(chosen));
}

} // namespace mneme
