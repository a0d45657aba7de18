#include "runtime/data/data_content.hpp"
#include "runtime/base/mapped_file.hpp"
#include <algorithm>
namespace mneme {
namespace {

/// Digest of rows, computed piece by piece, because the rows may be mapped from a file.
digest128 digest_of_rows(std::span<const std::byte> bytes) {
  constexpr std::size_t piece_bytes = std::size_t{16} << 20U;
  digest_stream digest;
  for (; !bytes.empty(); bytes = bytes.subspan(std::min(piece_bytes, bytes.size()))) {
    const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
    digest.add(piece);
    note_mapped_reads(piece.size());
  }
  return digest.value();
}

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
    to.add(digest_of_rows({static_cast<const std::byte*>(host.const_data_ptr()), host.nbytes()}));
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
