#include "runtime/transport/tls.hpp"
#include "runtime/base/disk_file.hpp"
#include <algorithm>
#include <cstring>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
namespace mneme {
namespace {

constexpr std::uint64_t key_bytes_max = 16 << 20; // limit; bundles of certificates have about 200 KiB

constexpr std::array<unsigned char, 5> key_name{'m', 'n', 'e', 'm', 'e'};

/// The pre-shared key of the connection's context, as the session that OpenSSL expects. Returns null if out of memory.
SSL_SESSION* session_of_key(SSL* connection) {
  constexpr std::array<unsigned char, 2> suite{0x13, 0x01}; // TLS_AES_128_GCM_SHA256
  const auto* const key = static_cast<const unsigned char*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(connection)));
  SSL_SESSION* const session = SSL_SESSION_new();
  if (session && SSL_SESSION_set1_master_key(session, key, 32) == 1 &&
      SSL_SESSION_set_cipher(session, SSL_CIPHER_find(connection, suite.data())) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* connection, const EVP_MD* /*digest*/, const unsigned char** name, std::size_t* name_bytes,
              SSL_SESSION** session) {
  *name = key_name.data();
  *name_bytes = key_name.size();
  *session = session_of_key(connection);
  return *session ? 1 : 0;
}

int find_key(SSL* connection, const unsigned char* name, std::size_t name_bytes, SSL_SESSION** session) {
  const bool is_known = std::equal(name, name + name_bytes, key_name.begin(), key_name.end());
  *session = is_known ? session_of_key(connection) : nullptr; // a null session means that there is no key of this name
  return 1;
}

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

expected<std::shared_ptr<const tls_identity>> tls_identity::load(const credentials& given) {
  if (!given.any())
    return std::shared_ptr<const tls_identity>{};
  if (!given.secret.empty() && given.has_files())
    return failed("--secret", "cannot be used together with --cert, --key and --ca; expected one of the two");
  auto identity = std::make_shared<tls_identity>();
  identity->context_.reset(SSL_CTX_new(TLS_method()));
  auto* const context = identity->context_.get();
  if (!context)
    return failed("", "OpenSSL cannot start: " + tls_error_text());
  if (!given.secret.empty())
    identity->use_secret(given.secret);
  else if (auto errors = identity->load_files(given); !errors.empty())
    return tl::unexpected(std::move(errors));
  SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return identity;
}

diagnostics tls_identity::load_files(const credentials& given) {
  auto* const context = context_.get();
  diagnostics errors;
  const auto read = [&](const char* option, const std::filesystem::path& file, const char* expected_there, auto use) {
    if (file.empty())
      errors.push_back({option, "is missing; expected " + std::string(expected_there) +
                                    ", as `mneme node --make-keys DIR` makes it"});
    else if (const auto text = unreadable_text(file, key_bytes_max); !text.empty())
      errors.push_back({option, "'" + file.string() + "' " + text + "; expected " + expected_there});
    else if (use(file.c_str()) != 1)
      errors.push_back(
          {option, "'" + file.string() + "' cannot be used (" + tls_error_text() + "); expected " + expected_there});
  };
  read("--cert", given.certificate, "a certificate (PEM)",
       [&](const char* file) { return SSL_CTX_use_certificate_chain_file(context, file); });
  read("--key", given.key, "the certificate's private key (PEM)",
       [&](const char* file) { return SSL_CTX_use_PrivateKey_file(context, file, SSL_FILETYPE_PEM); });
  read("--ca", given.authority, "the certificate of the authority that signs all nodes (PEM)",
       [&](const char* file) { return SSL_CTX_load_verify_file(context, file); });
  return errors;
}

/// Derives an external pre-shared key from the secret (RFC 8446, section 4.2.11). Every connection exchanges new keys.
void tls_identity::use_secret(const std::string& secret) {
  const std::string text = "mneme job secret\n" + secret;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), key_.data());
  auto* const context = context_.get();
  SSL_CTX_set_app_data(context, key_.data());
  SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256"); // the cipher suite of the pre-shared key
  SSL_CTX_set_psk_use_session_callback(context, offer_key);
  SSL_CTX_set_psk_find_session_callback(context, find_key);
  has_secret_ = true;
}

ssl_session tls_identity::session(int socket, bool accepts) const {
  ssl_session session(SSL_new(context_.get()));
  if (!session || SSL_set_fd(session.get(), socket) != 1)
    return nullptr;
  if (accepts && has_secret_) // OpenSSL rejects pre-shared keys if this end requests certificates
    SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  if (accepts)
    SSL_set_accept_state(session.get());
  else
    SSL_set_connect_state(session.get());
  return session;
}

std::string certificate_name_error(const ssl_st* session, const std::string& host) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(session), X509_free);
  if (!certificate)
    return "presents no certificate";
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  const bool is_named =
      X509_check_host(certificate.get(), host.data(), host.size(), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, nullptr) == 1 ||
      X509_check_ip_asc(certificate.get(), host.c_str(), 0) == 1;
  if (!names || is_named)
    return {};
  return "presents a certificate for other hosts than " + host;
}

} // namespace mneme
