/// credentials: how the processes of a run authenticate each other.
#pragma once
#include <filesystem>
#include <string>
namespace mneme {

/// Mutual authentication of this process and its peers, by a shared secret or by three PEM files. Without either, only
/// loopback addresses are allowed, unencrypted.
struct credentials {
  std::string secret{}; ///< The secret of the job.
  std::filesystem::path certificate{}, key{}, authority{};
  [[nodiscard]] bool has_files() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
  [[nodiscard]] bool any() const { return !secret.empty() || has_files(); }
};
inline constexpr std::size_t secret_letters_min = 16;

} // namespace mneme
