#include "runtime/method/program.hpp"
#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>
#include <set>
#include <stdexcept>
namespace mneme {
namespace {

constexpr std::size_t identity_bytes_max = 1 << 20;

} // namespace

std::int64_t declared_tensor::bytes() const {
  auto elements = static_cast<std::int64_t>(c10::elementSize(type));
  for (const auto extent : shape)
    elements *= extent;
  return elements;
}

at::Tensor program_call::labels() const {
  auto host = at::empty({samples.size()}, at::kLong);
  auto* const values = host.mutable_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < samples.size(); ++i)
    values[i] = samples.source->label((*samples.rows)[static_cast<std::size_t>(i)]);
  return host.to(device());
}

void check_declared(const program_job& job) {
  if (!job.body)
    throw std::invalid_argument("a job without a program: program_job::body is null");
  std::set<std::string> names;
  for (const auto& promised : job.body->outcome(job)) {
    const auto lead = "program '" + job.body->name() + "': its outcome() declares '" + promised.name + "'";
    if (!names.insert(promised.name).second)
      throw std::invalid_argument(lead + " twice");
    for (const auto extent : promised.shape)
      if (extent < 0)
        throw std::invalid_argument(lead + " with an extent of " + std::to_string(extent) +
                                    ": expected sizes that are fixed before the job runs");
  }
  if (names.empty())
    throw std::invalid_argument("program '" + job.body->name() + "' declares no outcome");
  // Called during validation. An exception here thus becomes an error of the client's round, not of the engine.
  if (job.body->stacked_bytes(job) < 0 || job.body->identity().size() > identity_bytes_max)
    throw std::invalid_argument("program '" + job.body->name() +
                                "': stacked_bytes() is below 0, or identity() a text of more than a megabyte");
}

} // namespace mneme
