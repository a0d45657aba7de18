#include "actors/nodes/report_validator.hpp"
#include "runtime/method/transfer_encoding.hpp"
#include "runtime/method/upload_size.hpp"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
namespace mneme {
namespace {

// Limits far above any real job or result; sums of times and counts below them cannot overflow.
constexpr std::int64_t rows_max = std::int64_t{1} << 40, bytes_max = std::int64_t{1} << 44, width_max = 1 << 20;
constexpr std::size_t names_max = 256, letters_max = 128, reason_letters_max = 1 << 14;

bool lies_within(std::int64_t value, std::int64_t low, std::int64_t high) { return low <= value && value <= high; }

/// True if the text is a valid name of a metric or loss term. Such names are written to files unchanged.
bool is_name(const std::string& text) {
  const auto is_letter = [](char letter) { return letter > ' ' && letter <= '~' && letter != '"' && letter != '\\'; };
  return !text.empty() && text.size() <= letters_max && std::all_of(text.begin(), text.end(), is_letter);
}

using metrics_by_name = std::map<std::string, double>;

bool are_names(const metrics_by_name& figures) {
  return figures.size() <= names_max &&
         std::all_of(figures.begin(), figures.end(), [](const auto& entry) { return is_name(entry.first); });
}

const metrics_by_name& counts_of(const client_result& result) {
  static const metrics_by_name none;
  return result.counts.get() ? *result.counts.get() : none;
}

/// Sum of each loss term, by name; empty if nothing was trained.
metrics_by_name terms_of(const client_result& result) {
  metrics_by_name sums;
  if (result.losses)
    for (const auto& term : result.losses->terms)
      sums[term.name] = term.sum;
  return sums;
}

bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

bool same_bits(const metrics_by_name& a, const metrics_by_name& b) {
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

std::string describe(assignment_id id, const assignment& given) {
  return fmt::format("assignment {} of client {}", id.value, given.client.value);
}

} // namespace

/// Decides from a hash of id and secret (splitmix64; Steele et al. 2014).
bool report_validator::is_sampled(assignment_id id) const {
  const double share = run_->scenario.worker.verify_share;
  if (share <= 0.0)
    return false;
  auto mixed = (id.value ^ secret_) + 0x9e3779b97f4a7c15ULL;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebULL;
  mixed ^= mixed >> 31U;
  return static_cast<double>(mixed >> 11U) * 0x1p-53 < share;
}

std::optional<shard_id> report_validator::end(replay_report outcome) {
  const auto entry = replays_.find(outcome.id);
  if (entry == replays_.end())
    return std::nullopt;
  entry->second.outcome = std::move(outcome);
  return entry->second.at;
}

validation_result report_validator::validate(const wave_report& report, const shard_journal& journal) const {
  for (const auto& job : report.issued)
    if (!lies_within(job.rows, 0, rows_max) || !lies_within(job.bytes, 0, bytes_max) ||
        !lies_within(job.width, 1, width_max))
      return {.error = fmt::format("requests a job of {} rows, {} bytes and width {}", job.rows, job.bytes, job.width)};
  for (const auto& failure : report.failed)
    if (auto error = failure_error(failure); !error.empty())
      return {.error = std::move(error)};
  validation_result verdict;
  for (const auto& finished : report.finished) {
    const auto& given = *journal.given(finished.id);
    if (auto error = value_error(finished, given); !error.empty())
      return {.error = std::move(error)};
    const auto entry = replays_.find(finished.id);
    if (entry == replays_.end())
      continue;
    const auto& replayed = entry->second.outcome;
    if (!replayed)
      verdict.is_pending = true;
    else if (!replayed->result && replayed->failure == interrupted_text)
      continue;
    else if (!replayed->result)
      return {.error = fmt::format("finishes {}, which fails in this process: {}", describe(finished.id, given),
                                   replayed->failure),
              .has_other_result = true};
    else if (!same_bits(finished.result, *replayed->result))
      return {.error = fmt::format("finishes {} with a result that differs from that of this process",
                                   describe(finished.id, given)),
              .has_other_result = true};
  }
  return verdict;
}

std::string report_validator::failure_error(const round_failure& failure) const {
  if (failure.reason == interrupted_text)
    return run_->interrupts && run_->interrupts->load() > 0 ? "" : "reports an interrupt that nobody requested";
  return failure.reason.empty() || failure.reason.size() > reason_letters_max
             ? "reports a failure without a reason, or with one that is too long"
             : "";
}

/// Checks a result against the rules that hold for every method. Returns the error text, or "".
std::string report_validator::value_error(const finished_round& finished, const assignment& given) const {
  const auto& result = finished.result;
  const auto format = run_->scenario.devices.transfer_dtype;
  const auto reject = [&](const std::string& text) {
    return fmt::format("finishes {} with {}", describe(given.id, given), text);
  };
  if (!lies_within(result.rows, 0, rows_max))
    return reject("a weight out of range");
  for (std::size_t p = 0; p < parties.size(); ++p) {
    const auto bytes = party_id(p) == party_id::server ? upload_bytes(result.upload.get(), run_->scenario, *run_->net)
                                                       : wire_bytes((result.*parties[p].part).get(), format);
    if (finished.bytes[p] != bytes)
      return reject(fmt::format("an upload of {} bytes, reported as {}", bytes, finished.bytes[p]));
  }
  if (given.observes && (result.upload || result.to_proxy))
    return reject("an upload, although the client only observes");
  if (result.to_proxy && !run_->needs.has_proxy)
    return reject("a message for a proxy, which the method does not have");
  if (!are_names(counts_of(result)))
    return reject("metrics with invalid names");
  for (const auto& [name, value] : counts_of(result))
    if (!std::isfinite(value))
      return reject("metrics that are not finite");
  const auto terms = terms_of(result);
  if (result.losses && !(are_names(terms) && terms.size() == result.losses->terms.size() &&
                         result.losses->rows >= 0.0 && std::isfinite(result.losses->rows)))
    return reject("losses of a negative number of rows, or with invalid names");
  return {};
}

} // namespace mneme
