/// tls: who this process is to its peers, and whom it believes.
#pragma once
#include "runtime/base/diagnostic.hpp"
#include <filesystem>
#include <memory>
struct ssl_ctx_st;
struct ssl_st;
namespace mneme {

/// PEM files. All three are given, or none: then nothing is encrypted and only the loopback is open.
struct tls_files {
  std::filesystem::path certificate{}, key{}, authority{};
  [[nodiscard]] bool any() const { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

struct freed_ssl {
  void operator()(ssl_st* session) const;
};
using ssl_session = std::unique_ptr<ssl_st, freed_ssl>;

/// A certificate with its key, and the authority that has to have signed the peer's. TLS 1.3, both sides verified, no
/// session is ever resumed.
class tls_identity {
public:
  /// What is wrong with the files, each by its option.
  [[nodiscard]] static expected<std::shared_ptr<const tls_identity>> load(const tls_files& files);
  /// One end of a connection over `socket`, which it does not own.
  [[nodiscard]] ssl_session session(int socket, bool accepts) const;

private:
  struct freed_context {
    void operator()(ssl_ctx_st* context) const;
  };
  std::unique_ptr<ssl_ctx_st, freed_context> context_;
};
using tls_identity_ref = std::shared_ptr<const tls_identity>;

/// What is wrong with the certificate of a peer that was reached as `host`: one that names hosts or addresses is valid
/// for these alone, one that names none (as make_keys() writes it) for all. Empty: nothing is.
[[nodiscard]] std::string wrong_with_name(const ssl_st* session, const std::string& host);

/// The oldest error that OpenSSL has kept for this thread, in words; forgets all of them.
[[nodiscard]] std::string tls_error_text();

/// Writes ca.pem, ca.key, node.pem and node.key, valid for ten years, into a folder in which none of them is. All nodes
/// of one owner may use the same pair: a peer counts as a friend if the authority has signed it.
[[nodiscard]] expected<void> make_keys(const std::filesystem::path& folder);

} // namespace mneme
