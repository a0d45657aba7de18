#include "runtime/transport/tls.hpp"
#include "runtime/base/disk_file.hpp"
#include <cstring>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
namespace mneme {
namespace {

constexpr std::uint64_t key_bytes_max = 16 << 20; // bundles of authorities take some 200 KiB

} // namespace

void freed_ssl::operator()(ssl_st* session) const { SSL_free(session); }
void tls_identity::freed_context::operator()(ssl_ctx_st* context) const { SSL_CTX_free(context); }

std::string tls_error_text() {
  const auto code = ERR_get_error();
  ERR_clear_error();
  if (code == 0)
    return "the connection was closed";
  if (ERR_SYSTEM_ERROR(code))
    return std::strerror(ERR_GET_REASON(code));
  const char* const reason = ERR_reason_error_string(code);
  return reason ? reason : "unknown error " + std::to_string(code);
}

expected<std::shared_ptr<const tls_identity>> tls_identity::load(const tls_files& files) {
  auto identity = std::make_shared<tls_identity>();
  identity->context_.reset(SSL_CTX_new(TLS_method()));
  auto* const context = identity->context_.get();
  if (!context)
    return failed("", "OpenSSL cannot begin: " + tls_error_text());
  diagnostics wrong;
  const auto read = [&](const char* option, const std::filesystem::path& file, const char* expected_there, auto use) {
    if (file.empty())
      wrong.push_back({option, "is missing; expected " + std::string(expected_there) +
                                   ", as `mneme node --make-keys DIR` makes it"});
    else if (const auto text = unreadable_text(file, key_bytes_max); !text.empty())
      wrong.push_back({option, "'" + file.string() + "' " + text + "; expected " + expected_there});
    else if (use(file.c_str()) != 1)
      wrong.push_back(
          {option, "'" + file.string() + "' cannot be used (" + tls_error_text() + "); expected " + expected_there});
  };
  read("--cert", files.certificate, "a certificate (PEM)",
       [&](const char* file) { return SSL_CTX_use_certificate_chain_file(context, file); });
  read("--key", files.key, "the certificate's private key (PEM)",
       [&](const char* file) { return SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM); });
  read("--ca", files.authority, "the certificate of the authority that signs all nodes (PEM)",
       [&](const char* file) { return SSL_CTX_load_verify_file(context, file); });
  if (!wrong.empty())
    return tl::unexpected(std::move(wrong));

  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return identity;
}

ssl_session tls_identity::session(int socket, bool accepts) const {
  ssl_session session(SSL_new(context_.get()));
  if (!session || SSL_set_fd(session.get(), socket) != 1)
    return nullptr;
  if (accepts)
    SSL_set_accept_state(session.get());
  else
    SSL_set_connect_state(session.get());
  return session;
}

std::string wrong_with_name(const ssl_st* session, const std::string& host) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(session), X509_free);
  if (!certificate)
    return "shows no certificate";
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  const bool is_named =
      X509_check_host(certificate.get(), host.data(), host.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1 ||
      X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1;
  if (!names || is_named)
    return {};
  return "shows a certificate for other hosts than " + host;
}

} // namespace mneme
