/// client_view: what a client's half in Python sees of its round, and what it ends with.
#pragma once
#include "strategies/shared/averaging.hpp"
#include "tools/python/engine/job_requests.hpp"
#include <optional>
namespace mneme {

/// What the server has sent, as all clients of a round are shown it.
struct broadcast_view {
  broadcast sent{};
  tensors_ref weights{};       ///< All weights of the net [P]; null: none were sent.
  nb::object weights_object{}; ///< The same as a tensor of torch's, or None.
  nb::object tensors_object{}; ///< dict: what else was sent.
  [[nodiscard]] bool is_of(const broadcast& in) const;
};

/// The context of one client's round.
struct client_view {
  const method_setup* setup = nullptr;
  const client_context* context = nullptr; ///< Null: the round is over.
  const broadcast_view* in = nullptr;
  std::shared_ptr<const row_owner> owner{};
  nb::object memory{}; ///< dict, once it was asked for.

  [[nodiscard]] const client_context& live() const;
  [[nodiscard]] job_world world() const;
};

/// `mneme.Upload(weights, tensors, rows=, memory=, counts=)`
struct upload_object {
  nb::object weights{}, tensors{}, memory{}, counts{};
  std::optional<std::int64_t> rows{};
};

/// Random numbers of a client or server, from a key.
struct random_stream {
  rng_stream stream;
};

void bind_client_view(nb::module_& module);

} // namespace mneme
