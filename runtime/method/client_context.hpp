/// client_context: inputs of a client's round, and the jobs that it may request.
#pragma once
#include "runtime/method/context.hpp"
#include "runtime/method/round.hpp"
namespace mneme {

/// An object of this class exists as long as the client's round.
class client_context : public context {
public:
  client_context(job_channel& channel, const assignment& assigned, generated_row_store* store = nullptr)
      : context(channel, store), assigned_(assigned) {}
  /// Context of the same round with another assignment. @param changed must outlive this object
  client_context(const client_context& round, const assignment& changed) : context(round), assigned_(changed) {}
  [[nodiscard]] const assignment& assigned() const noexcept { return assigned_; }
  [[nodiscard]] client_id self() const noexcept { return assigned_.client; }
  [[nodiscard]] const sample_view& samples() const noexcept { return assigned_.samples; }
  /// The client's memory. It is empty before the first delivered round.
  [[nodiscard]] const tensor_map& memory() const noexcept;
  /// Random key for a purpose of the method. @param own_purpose at least first_method_purpose
  [[nodiscard]] rng_key stream(std::uint32_t own_purpose) const noexcept {
    return {assigned_.seed, own_purpose, assigned_.client, assigned_.in->info.task, assigned_.visit, 0};
  }
  /// Random key for shuffling and augmentation in training.
  [[nodiscard]] rng_key training_stream() const noexcept { return key_for(stream(0), purpose::shuffle); }

private:
  const assignment& assigned_;
};

} // namespace mneme
