#include "runtime/data/data_content.hpp"
namespace mneme {
namespace {

template <class T>
void add(run_digest& to, const std::vector<T>& values) {
  to.add(std::ssize(values));
  to.add(digest_of(std::as_bytes(std::span(values))));
}

void add(run_digest& to, const image_table& rows) {
  const auto host = rows.images.defined() ? rows.images.contiguous() : rows.images;
  if (host.defined()) {
    for (const auto extent : host.sizes())
      to.add(extent);
    to.add(digest_of({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()}));
  }
  add(to, rows.labels);
  add(to, rows.domains);
  add(to, rows.file_rows);
}

} // namespace

digest128 data_content(const raw_data& data) {
  run_digest digest;
  add(digest, data.train);
  add(digest, data.test);
  digest.add(data.classes);
  digest.add(data.tokens);
  add(digest, data.mean);
  add(digest, data.deviation);
  return digest.value();
}

} // namespace mneme
