/// tls: identity of this process towards peers, and verification of theirs.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <memory>
struct ssl_ctx_st;
struct ssl_st;
namespace mneme {

/// PEM files: either all three, or none. Without them only the loopback is allowed, unencrypted.
struct tls_files {
  std::filesystem::path certificate{}, key{}, authority{};
  [[nodiscard]] bool any() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

struct freed_ssl {
  void operator()(ssl_st* session) const;
};
using ssl_session = std::unique_ptr<ssl_st, freed_ssl>;

/// Certificate with key, and the authority that must have signed the peer's certificate. TLS 1.3, both sides are
/// verified, no session resumption.
class tls_identity {
public:
  /// Loads the files. Errors name the option.
  [[nodiscard]] static expected<std::shared_ptr<const tls_identity>> load(const tls_files& files);
  /// Creates one end of a connection over `socket`, which the caller owns.
  [[nodiscard]] ssl_session session(int socket, bool accepts) const;

private:
  struct freed_context {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, freed_context> context_;
};
using tls_identity_ref = std::shared_ptr<const tls_identity>;

/// Checks the name in the certificate of a peer that was reached as `host`. A certificate with host names or addresses
/// is valid for these only; one without (as make_keys() writes it) is valid for all. Returns the error; empty if valid.
[[nodiscard]] std::string wrong_with_name(const ssl_st* session, const std::string& host);

/// Message of the oldest OpenSSL error of this thread. Clears all errors.
[[nodiscard]] std::string tls_error_text();

/// Writes ca.pem, ca.key, node.pem and node.key, valid for ten years. Fails if one of them exists. All nodes of one
/// owner may use the same pair: a peer is accepted if the authority has signed its certificate.
[[nodiscard]] expected<void> make_keys(const std::filesystem::path& folder);

} // namespace mneme
