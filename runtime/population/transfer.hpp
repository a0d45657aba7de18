/// transfer: a message that is sent over a device's link.
#pragma once
#include "runtime/base/ids.hpp"
#include "runtime/base/virtual_clock.hpp"
namespace mneme {

enum class link_direction : std::uint8_t { up, down };

struct transfer {
  client_id client{};
  std::int64_t bytes = 0;
  virtual_time begins{};
  std::uint32_t visit = 0; ///< Index of the client's visit; each visit draws its own jitter.
};

} // namespace mneme
