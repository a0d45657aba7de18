// Creates a private certificate authority, and a node certificate that it signs.
#include "runtime/transport/tls.hpp"
#include <array>
#include <cstdio>
#include <fcntl.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdexcept>
#include <unistd.h>
namespace mneme {
namespace {

using key_handle = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using certificate_handle = std::unique_ptr<X509, decltype(&X509_free)>;
using extension_handle = std::unique_ptr<X509_EXTENSION, decltype(&X509_EXTENSION_free)>;
using file_handle = std::unique_ptr<std::FILE, decltype(&std::fclose)>;

void require(bool done, const std::string& what_failed) {
  if (!done)
    throw std::runtime_error(what_failed + ": " + tls_error_text());
}

key_handle new_key() {
  key_handle key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  require(key != nullptr, "cannot create a key");
  return key;
}

void extend(X509& certificate, X509& issuer, int kind, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  const extension_handle extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value), X509_EXTENSION_free);
  require(extension && X509_add_ext(&certificate, extension.get(), -1) == 1, "cannot create a certificate");
}

/// Makes a certificate that is valid for ten years. The validity starts a day ago, because clocks of machines differ.
/// @param issuer null for a self-signed authority
certificate_handle signed_certificate(EVP_PKEY& key, const char* name, X509* issuer, EVP_PKEY& signer) {
  constexpr long day = 24L * 3600;
  certificate_handle certificate(X509_new(), X509_free);
  require(certificate != nullptr, "cannot create a certificate");
  std::uint64_t serial = 0;
  require(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "cannot draw a serial number");
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), serial >> 1U);
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -day);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3650 * day);
  X509_set_pubkey(certificate.get(), &key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  X509& signed_by = issuer ? *issuer : *certificate;
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(&signed_by));
  extend(*certificate, signed_by, NID_basic_constraints, issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
  extend(*certificate, signed_by, NID_key_usage, issuer ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign");
  if (issuer)
    extend(*certificate, signed_by, NID_ext_key_usage, "serverAuth,clientAuth");
  extend(*certificate, signed_by, NID_subject_key_identifier, "hash");
  if (issuer)
    extend(*certificate, signed_by, NID_authority_key_identifier, "keyid");
  require(X509_sign(certificate.get(), &signer, EVP_sha256()) > 0, "cannot sign a certificate");
  return certificate;
}

/// Creates a file that only its owner may read. Fails if it exists.
template <class Write>
void write_new(const std::filesystem::path& path, Write write) {
  const int number = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  file_handle file(number < 0 ? nullptr : ::fdopen(number, "w"), std::fclose);
  if (!file)
    throw std::system_error(errno, std::generic_category(), "cannot write '" + path.string() + "'");
  require(write(file.get()) == 1 && std::fflush(file.get()) == 0, "cannot write '" + path.string() + "'");
}

void write_pair(const std::filesystem::path& folder, const std::string& name, X509& certificate, EVP_PKEY& key) {
  write_new(folder / (name + ".key"),
            [&](std::FILE* file) { return PEM_write_PrivateKey(file, &key, nullptr, nullptr, 0, nullptr, nullptr); });
  write_new(folder / (name + ".pem"), [&](std::FILE* file) { return PEM_write_X509(file, &certificate); });
}

} // namespace

expected<void> make_keys(const std::filesystem::path& folder) {
  try {
    std::filesystem::create_directories(folder);
    for (const char* name : {"ca.pem", "ca.key", "node.pem", "node.key"})
      if (std::filesystem::exists(folder / name))
        return failed("--make-keys", "'" + (folder / name).string() + "' already exists; expected a folder without it");
    const auto authority_key = new_key(), node_key = new_key();
    const auto authority = signed_certificate(*authority_key, "mneme authority", nullptr, *authority_key);
    const auto node = signed_certificate(*node_key, "mneme node", authority.get(), *authority_key);
    write_pair(folder, "ca", *authority, *authority_key);
    write_pair(folder, "node", *node, *node_key);
  } catch (const std::exception& e) {
    return failed("--make-keys", e.what());
  }
  return {};
}

} // namespace mneme
