#include "runtime/federation/client_pool.hpp"
#include "runtime/federation/persisted_values.hpp"
#include "runtime/population/cohort.hpp"
#include <algorithm>
namespace mneme {

client_pool::client_pool(const federation_settings& settings)
    : settings_(&settings), availability_(settings.clients),
      records_(static_cast<std::size_t>(settings.clients->size())),
      may_leave_at_work_(settings.clients->has_random_enrolment() || settings.clients->has_staggered_tasks()),
      idle_(settings.is_async() ? settings.clients->size() : 0) {}

/// Rebuilds the idle set, because a new task changes which clients have rows and are enrolled.
void client_pool::plan_task(const task_plan& plan) {
  plan_ = plan;
  for (std::uint32_t c = 0; settings_->is_async() && c < records_.size(); ++c)
    list({c});
}

void client_pool::list(client_id client) {
  if (settings_->is_async())
    idle_.put(client, is_available(client));
}

bool client_pool::has_rows(client_id client) const {
  if (settings_->rows->central()) // in centralized runs only client 0 has rows
    return settings_->rows->size(client, opened_) > 0;
  return plan_.clients_without_rows || settings_->rows->size(client, availability_.task_of(client)) > 0;
}

bool client_pool::is_available(client_id client) const {
  if (records_[client.value].busy)
    return false;
  const bool is_there =
      settings_->rows->central() || availability_.is_available(client); // client 0 is always available
  return is_there && has_rows(client);
}

bool client_pool::clients_may_come() const {
  if (!availability_.next_change())
    return false;
  if (!availability_.endless())
    return true;
  for (std::uint32_t c = 0; c < records_.size(); ++c)
    if (has_rows({c}) && availability_.may_take_part({c}))
      return true;
  return false;
}

std::vector<client_id> client_pool::draw_cohort(round_id round) const {
  const auto free = [this](client_id client) { return is_available(client); };
  if (settings_->rows->central())
    return mneme::draw_cohort({}, 1, 1, free);
  const auto count = settings_->clients->size();
  const auto stated = settings_->rounds.cohort; // 0 selects all available clients
  const auto size = plan_.all_enrolled || stated == 0 ? count : stated;
  const auto drawn = [&](client_id client) {
    return free(client) &&
           (!plan_.first_enrolled_only || settings_->clients->member(client, task_id{}) == membership::active);
  };
  const rng_key key{.seed = settings_->seed, .task = opened_, .index = round.value};
  return mneme::draw_cohort(key_for(key, purpose::cohort), count, size, drawn);
}

bool client_pool::has_observers() const noexcept {
  return !settings_->rows->central() && std::any_of(activities.begin(), activities.end(), [this](const activity& kind) {
    return kind.clients && plan_.*kind.clients > 0;
  });
}

std::vector<client_id> client_pool::draw_observers(const activity& kind, round_id round) const {
  if (!kind.clients || plan_.*kind.clients == 0 || settings_->rows->central())
    return {};
  const rng_key key{.seed = settings_->seed, .task = opened_, .index = round.value};
  return mneme::draw_cohort(key_for(key, kind.drawn_by), settings_->clients->size(), plan_.*kind.clients,
                            [this](client_id client) { return is_available(client); });
}

/// Draws ranks in the ordered set of idle clients, so that the order of insertion has no effect.
std::vector<client_id> client_pool::draw_idle(std::int64_t most, std::uint64_t draw) {
  std::vector<client_id> drawn;
  const auto count = std::min(most, idle_.size());
  if (count <= 0)
    return drawn;
  const rng_key key{.seed = settings_->seed, .index = draw};
  rng_stream stream(key_for(key, purpose::cohort));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto rank = stream.below(static_cast<std::uint64_t>(idle_.size()));
    const auto client = idle_.nth(static_cast<std::int64_t>(rank));
    idle_.put(client, false);
    drawn.push_back(client);
  }
  std::sort(drawn.begin(), drawn.end());
  return drawn;
}

std::uint32_t client_pool::begin_visit(client_id client) {
  auto& record = records_[client.value];
  record.busy = 1;
  return record.visits++;
}

void client_pool::assigned(client_id client, assignment_id id) {
  if (may_leave_at_work_)
    assignments_[client] = id;
}

void client_pool::end_visit(client_id client) {
  records_[client.value].busy = 0;
  if (may_leave_at_work_)
    assignments_.erase(client);
  list(client);
}

std::optional<assignment_id> client_pool::assignment_of(client_id client) const {
  const auto entry = assignments_.find(client);
  if (entry == assignments_.end())
    return std::nullopt;
  return entry->second;
}

bool client_pool::is_valid() const {
  const auto clients = settings_->clients->size();
  return std::ssize(records_) == clients && availability_.is_valid(settings_->tasks.size()) &&
         idle_.is_valid(settings_->is_async() ? clients : 0) && opened_.value < settings_->tasks.size();
}

void client_pool::persist(archive& state) { state.plain(records_)(availability_)(idle_)(opened_)(plan_); }

} // namespace mneme
