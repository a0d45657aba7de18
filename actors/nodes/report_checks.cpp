#include "actors/nodes/report_checks.hpp"
#include "runtime/method/wire.hpp"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <span>
namespace mneme {
namespace {

// What no job or result comes near; times and sums of such numbers stay in range.
constexpr std::int64_t rows_max = std::int64_t{1} << 40, bytes_max = std::int64_t{1} << 44, width_max = 1 << 20;
constexpr std::size_t names_max = 256, letters_max = 128, reason_letters_max = 1 << 14;

bool lies_within(std::int64_t value, std::int64_t low, std::int64_t high) { return low <= value && value <= high; }

/// A name that methods give to figures and terms of losses: it goes to files as it is.
bool is_name(const std::string& text) {
  const auto is_letter = [](char letter) { return letter > ' ' && letter <= '~' && letter != '"' && letter != '\\'; };
  return !text.empty() && text.size() <= letters_max && std::all_of(text.begin(), text.end(), is_letter);
}

using figures_by_name = std::map<std::string, double>;

bool are_names(const figures_by_name& figures) {
  return figures.size() <= names_max &&
         std::all_of(figures.begin(), figures.end(), [](const auto& entry) { return is_name(entry.first); });
}

const figures_by_name& counts_of(const client_result& result) {
  static const figures_by_name none;
  return result.counts.get() ? *result.counts.get() : none;
}

/// The sum of each term of the loss; empty where nothing was trained. A name that stands twice is one entry.
figures_by_name terms_of(const client_result& result) {
  figures_by_name sums;
  if (result.losses)
    for (const auto& term : result.losses->terms)
      sums[term.name] = term.sum;
  return sums;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same_bits(const figures_by_name& a, const figures_by_name& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && same_bits(left.second, right.second);
  });
}

bool same_bits(const tensors_ref& a, const tensors_ref& b) {
  if (!a || !b)
    return !a && !b;
  return std::equal(a->begin(), a->end(), b->begin(), b->end(), [](const auto& left, const auto& right) {
    const auto &x = left.second, &y = right.second;
    return left.first == right.first && x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
           std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
  });
}

bool same_bits(const client_result& a, const client_result& b) {
  if ((a.losses == nullptr) != (b.losses == nullptr))
    return false;
  const bool same_losses =
      !a.losses || (same_bits(a.losses->rows, b.losses->rows) && same_bits(a.losses->sum, b.losses->sum) &&
                    same_bits(terms_of(a), terms_of(b)));
  return same_losses && a.rows == b.rows && same_bits(counts_of(a), counts_of(b)) && same_bits(a.upload, b.upload) &&
         same_bits(a.memory, b.memory) && same_bits(a.to_proxy, b.to_proxy);
}

/// The same names, types and sizes.
bool same_layout(const tensor_map& a, const tensor_map& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& left, const auto& right) {
    return left.first == right.first && left.second.scalar_type() == right.second.scalar_type() &&
           left.second.sizes() == right.second.sizes();
  });
}

std::string describe(assignment_id id, const assignment& given) {
  return fmt::format("assignment {} of client {}", id.value, given.client.value);
}

std::array<std::int64_t, 4> place_of(const assignment& given) {
  const auto& place = given.in->place;
  return {place.task.value, given.task.value, given.looks ? 1 : 0,
          place.round_of_task + 1 == place.rounds_of_task ? 1 : 0};
}

} // namespace

/// A result without its numbers.
struct report_checks::result_form {
  std::string kind{};
  known_forms<std::string>::sizes sizes{};
  bool operator==(const result_form&) const = default;
};

report_checks::report_checks(run_context_ref run, std::uint64_t secret) : run_(std::move(run)), secret_(secret) {}

/// By a hash of id and secret (splitmix64; Steele et al. 2014).
bool report_checks::samples(assignment_id id) const {
  const double share = run_->scenario.worker.verify_share;
  if (share <= 0.0)
    return false;
  auto mixed = (id.value ^ secret_) + 0x9e3779b97f4a7c15ULL;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  mixed ^= mixed >> 31U;
  return static_cast<double>(mixed >> 11U) * 0x1p-53 < share;
}

// -- what this process computes itself --------------------------------------------------------------------------------

void report_checks::begin(const assignment& given, shard_id at) {
  const auto id = given.id;
  rounds_[id] = {.given = given, .at = at};
}

std::vector<shard_id> report_checks::take(const wave_report& from_here) {
  std::vector<shard_id> known;
  const auto note = [&](assignment_id id, const auto& change) {
    if (const auto round = rounds_.find(id); round != rounds_.end()) {
      change(round->second);
      if (known.empty() || known.back() != round->second.at)
        known.push_back(round->second.at);
    }
  };
  for (const auto& job : from_here.issued)
    note(job.id.assignment, [&](round_here& round) {
      if (round.stages.size() <= job.id.stage)
        round.stages.resize(job.id.stage + 1);
      if (auto& stage = round.stages[job.id.stage]; stage.size() == job.id.step) // it may be computed a second time
        stage.push_back(job);
    });
  for (const auto& finished : from_here.finished)
    note(finished.id, [&](round_here& round) { round.finished = finished; });
  for (const auto& failure : from_here.failed)
    note(failure.last_job.assignment, [&](round_here& round) { round.failed = failure; });
  return known;
}

bool report_checks::is_over(assignment_id id) const {
  const auto round = rounds_.find(id);
  return round == rounds_.end() || round->second.is_over();
}

const round_failure* report_checks::failure_of(assignment_id id) const {
  const auto round = rounds_.find(id);
  return round != rounds_.end() && round->second.failed ? &*round->second.failed : nullptr;
}

/// Null, and noted: it has to be computed first.
const report_checks::round_here* report_checks::awaited(assignment_id id, report_verdict& verdict) const {
  const auto round = rounds_.find(id);
  if (round != rounds_.end())
    return &round->second;
  verdict.awaited.push_back(id);
  return nullptr;
}

// -- reports ----------------------------------------------------------------------------------------------------------

report_verdict report_checks::judge(const wave_report& report, const shard_journal& journal) {
  report_verdict verdict;
  const auto fails = [&](std::string why) { // or waits: one answer of a form is enough to know the others by it
    verdict.wrong = std::move(why);
    return !verdict.wrong.empty() || !verdict.awaited.empty();
  };
  const std::span<const issued_job> issued(report.issued);
  for (std::size_t first = 0, next = 0; first < issued.size(); first = next) {
    const auto id = issued[first].id.assignment;
    while (next < issued.size() && issued[next].id.assignment == id)
      ++next;
    if (fails(wrong_with_jobs(issued.subspan(first, next - first), *journal.given(id), verdict)))
      return verdict;
  }
  for (const auto& finished : report.finished)
    if (fails(wrong_with_result(finished, {*journal.given(finished.id), journal.stages_told(finished.id)}, verdict)))
      return verdict;
  for (const auto& failure : report.failed)
    if (fails(wrong_with_failure(failure, verdict)))
      return verdict;
  return verdict;
}

std::int64_t report_checks::own_rows(const assignment& given) const {
  return run_->rows->size(given.client, given.task);
}

/// Jobs of one stage of a round. Their rows decide when virtual time goes on.
std::string report_checks::wrong_with_jobs(std::span<const issued_job> jobs, const assignment& given,
                                           report_verdict& verdict) {
  for (const auto& job : jobs)
    if (!lies_within(job.rows, 0, rows_max) || !lies_within(job.bytes, 0, bytes_max) ||
        !lies_within(job.width, 1, width_max))
      return fmt::format("asks for a job of {} rows, {} bytes and width {}", job.rows, job.bytes, job.width);
  const auto id = given.id;
  const auto [task, clients_task, looks, is_last] = place_of(given);
  const auto stage = jobs.front().id.stage;
  const kind_of_stage kind{task, clients_task, looks, is_last, stage, std::ssize(jobs)};
  known_forms<kind_of_stage>::sizes sizes; // rows of each job, in parts of the client's own
  const auto client_rows = static_cast<double>(std::max<std::int64_t>(own_rows(given), 1));
  for (const auto& job : jobs)
    sizes.push_back(static_cast<double>(job.rows) / client_rows);
  if (!has_begun(id) && !samples(id) && stages_.knows(kind, sizes))
    return {};
  const auto* const here = awaited(id, verdict);
  if (!here || (here->failed && is_interrupted()))
    return {};
  if (here->stages.size() <= stage) {
    if (here->is_over())
      return fmt::format("asks for stage {} of {}, which it does not have", stage, describe(id, given));
    verdict.awaited.push_back(id);
    return {};
  }
  const auto& own = here->stages[stage];
  const bool same = std::equal(own.begin(), own.end(), jobs.begin(), jobs.end(), [](const auto& a, const auto& b) {
    return a.id == b.id && a.key.kind == b.key.kind && a.rows == b.rows && a.bytes == b.bytes && a.width == b.width;
  });
  if (!same)
    return fmt::format("asks for other jobs in stage {} of {} than it has", stage, describe(id, given));
  stages_.learn(kind, sizes);
  return {};
}

std::string report_checks::wrong_with_failure(const round_failure& failure, report_verdict& verdict) const {
  if (failure.reason == interrupted_text)
    return is_interrupted() ? "" : "says that it was interrupted, by nobody";
  if (failure.reason.empty() || failure.reason.size() > reason_letters_max)
    return "gives no reason for a failure, or too long a one";
  const auto* const here = awaited(failure.last_job.assignment, verdict);
  if (!here || is_interrupted())
    return {};
  if (!here->is_over())
    verdict.awaited.push_back(failure.last_job.assignment);
  if (here->finished)
    return fmt::format("fails at {}, which does not fail here: {}", describe(failure.last_job.assignment, here->given),
                       failure.reason);
  return {};
}

std::string report_checks::wrong_with_result(const finished_round& finished, const ended_round& round,
                                             report_verdict& verdict) {
  const auto& given = round.given;
  if (auto wrong = wrong_with_values(finished, given); !wrong.empty())
    return wrong;
  if (!has_begun(given.id) && !samples(given.id)) {
    bool is_known = is_plain(finished, round);
    if (!is_known) {
      const auto form = form_of(finished, round);
      is_known = results_.knows(form.kind, form.sizes);
    }
    if (is_known) {
      verdict.has_unchecked = true;
      return {};
    }
  }
  const auto* const here = awaited(given.id, verdict);
  if (!here)
    return {};
  if (!here->is_over()) {
    verdict.awaited.push_back(given.id);
    return {};
  }
  if (here->failed)
    return is_interrupted()
               ? ""
               : fmt::format("finishes {}, which fails here: {}", describe(given.id, given), here->failed->reason);
  return differences(finished, round, *here, verdict);
}

/// What holds for every result, whatever the method.
std::string report_checks::wrong_with_values(const finished_round& finished, const assignment& given) const {
  const auto& result = finished.result;
  const auto format = run_->scenario.devices.wire;
  const auto refuse = [&](const char* text) {
    return fmt::format("finishes {} with {}", describe(given.id, given), text);
  };
  if (!lies_within(result.rows, 0, rows_max))
    return refuse("a weight out of range");
  for (std::size_t p = 0; p < parties.size(); ++p)
    if (finished.bytes[p] != wire_bytes((result.*parties[p].part).get(), format))
      return refuse("an upload of other bytes than it says");
  if (given.looks && (result.upload || result.to_proxy))
    return refuse("an upload although it was to look only");
  if (result.to_proxy && !run_->needs.has_proxy)
    return refuse("a message for a proxy that there is not");
  if (!are_names(counts_of(result)))
    return refuse("figures that have no names");
  for (const auto& [name, value] : counts_of(result))
    if (!std::isfinite(value))
      return refuse("figures that are no numbers");
  const auto terms = terms_of(result);
  if (result.losses && !(are_names(terms) && terms.size() == result.losses->terms.size() &&
                         result.losses->rows >= 0.0 && std::isfinite(result.losses->rows)))
    return refuse("losses of no rows, or without names");
  return {};
}

std::string report_checks::differences(const finished_round& finished, const ended_round& round, const round_here& here,
                                       report_verdict& verdict) {
  const auto& given = round.given;
  const auto stages = static_cast<std::uint32_t>(here.stages.size());
  const auto form = form_of(*here.finished, {given, stages});
  results_.learn(form.kind, form.sizes);
  if (round.stages != stages)
    return fmt::format("finishes {} after {} stages, of which it has {}", describe(given.id, given), round.stages,
                       stages);
  if (form_of(finished, round) != form)
    return fmt::format("finishes {} with tensors of other names, types or sizes than it has",
                       describe(given.id, given));
  if (run_->device != "cpu") { // where bits depend on the batch
    verdict.has_unchecked = true;
    return {};
  }
  if (same_bits(finished.result, here.finished->result))
    return {};
  verdict.is_other_result = true;
  return fmt::format("finishes {} with other numbers than this process finds", describe(given.id, given));
}

// -- forms ------------------------------------------------------------------------------------------------------------

/// The upload of a method that averages, after one job: laid out as the weights that it was sent, of as many rows as
/// the client has.
bool report_checks::is_plain(const finished_round& finished, const ended_round& round) const {
  const auto& result = finished.result;
  const auto& given = round.given;
  return run_->needs.upload_size_known && round.stages == 1 && !given.looks && result.upload && given.in->weights &&
         same_layout(*result.upload, *given.in->weights) && !result.memory && !result.to_proxy &&
         counts_of(result).empty() && result.rows > 0 && result.rows == own_rows(given);
}

/// Sizes are those of first axes, which may be numbers of rows, and the weight in parts of the client's own rows.
report_checks::result_form report_checks::form_of(const finished_round& finished, const ended_round& round) const {
  const auto& result = finished.result;
  const auto& given = round.given;
  result_form form{.kind = fmt::format("{} stages ", round.stages)};
  for (const auto number : place_of(given))
    form.kind += fmt::format("{} ", number);
  const auto add = [&](char part, const tensors_ref& tensors) {
    form.kind += tensors ? part : '-';
    if (!tensors)
      return;
    for (const auto& [name, value] : *tensors) {
      form.kind += fmt::format("{}:{} {}", name.size(), name, static_cast<int>(value.scalar_type()));
      for (std::int64_t axis = 1; axis < value.dim(); ++axis)
        form.kind += fmt::format("x{}", value.size(axis));
      form.kind += value.dim() > 0 ? "," : ".";
      if (value.dim() > 0)
        form.sizes.push_back(static_cast<double>(value.size(0)));
    }
  };
  add('u', result.upload);
  add('m', result.memory);
  add('p', result.to_proxy);
  for (const auto& [name, value] : counts_of(result))
    form.kind += "c" + name;
  for (const auto& [name, value] : terms_of(result))
    form.kind += "l" + name;
  const auto own = own_rows(given);
  form.kind += result.rows == 0 ? " none" : result.rows == own ? " own" : " other";
  form.sizes.push_back(static_cast<double>(result.rows) / static_cast<double>(std::max<std::int64_t>(own, 1)));
  return form;
}

} // namespace mneme
