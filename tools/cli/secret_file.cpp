#include "tools/cli/secret_file.hpp"
#include "runtime/base/credentials.hpp"
#include "runtime/base/disk_file.hpp"
#include "runtime/base/trim.hpp"
#include <cstdlib>
#include <fmt/format.h>
#include <sys/stat.h>
namespace mneme {
namespace {

expected<std::string> read_file(const char* option, const std::string& file) {
  constexpr std::uint64_t bytes_max = 4096;
  auto text = text_of_file(file, bytes_max);
  if (!text)
    return tl::unexpected(text.error());
  struct stat status {};
  if (::stat(file.c_str(), &status) != 0 || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return failed(option, "'" + file +
                              "' can be read by others; expected a file that only its owner may read: chmod 600 " +
                              file);
  return std::string(trim(text->substr(0, text->find_first_of("\r\n"))));
}

} // namespace

expected<std::string> read_secret(const secret_source& source) {
  const char* const variable = source.reads_variable ? std::getenv(source.variable) : nullptr;
  const bool has_file = !source.file.empty();
  if (!has_file && (!variable || !*variable))
    return std::string();
  auto secret = has_file ? read_file(source.option, source.file) : expected<std::string>(variable);
  if (secret && secret->size() < secret_letters_min)
    return failed(has_file ? source.option : source.variable,
                  fmt::format("has {} characters; expected at least {}: export {}=$(openssl rand -hex 32)",
                              secret->size(), secret_letters_min, source.variable));
  return secret;
}

} // namespace mneme
