/// tls: the identity of this process, and verification of its peers.
#pragma once
#include "runtime/base/credentials.hpp"
#include "runtime/base/diagnostic.hpp"
#include <array>
#include <memory>
struct ssl_ctx_st;
struct ssl_st;
namespace mneme {

struct freed_ssl {
  void operator()(ssl_st* session) const;
};
using ssl_session = std::unique_ptr<ssl_st, freed_ssl>;

/// Credentials of one end: a pre-shared key, or a certificate with its key and the authority that must have signed the
/// peer's certificate. Uses TLS 1.3, verifies both ends, and does not resume sessions.
class tls_identity {
public:
  /// Loads the files or derives the key. Returns null without credentials. Errors name the option.
  [[nodiscard]] static expected<std::shared_ptr<const tls_identity>> load(const credentials& given);
  /// Creates one end of a connection over `socket`, which the caller keeps open.
  [[nodiscard]] ssl_session session(int socket, bool accepts) const;
  /// True if peers authenticate with the shared secret instead of certificates.
  [[nodiscard]] bool has_secret() const noexcept { return has_secret_; }

private:
  [[nodiscard]] diagnostics load_files(const credentials& given);
  void use_secret(const std::string& secret);
  struct freed_context {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, freed_context> context_;
  std::array<unsigned char, 32> key_{}; // derived from the secret
  bool has_secret_ = false;
};
using tls_identity_ref = std::shared_ptr<const tls_identity>;

/// Checks that the certificate of a peer reached as `host` is valid for that name. A certificate without names, such as
/// one from make_keys(), is valid for all names. Returns the error; "" if valid.
[[nodiscard]] std::string certificate_name_error(const ssl_st* session, const std::string& host);

/// Message of the oldest OpenSSL error on this thread. Clears all errors.
[[nodiscard]] std::string tls_error_text();

/// Writes ca.pem, ca.key, node.pem and node.key, valid for ten years. Fails if one of them exists. All nodes of an
/// owner may share them: a peer is accepted if the authority has signed its certificate.
[[nodiscard]] expected<void> make_keys(const std::filesystem::path& folder);

} // namespace mneme
