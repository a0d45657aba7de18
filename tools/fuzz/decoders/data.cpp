#include "runtime/data/idx.hpp"
#include "runtime/data/image_file.hpp"
#include "runtime/data/records.hpp"
#include "tools/fuzz/decoders/decoder.hpp"
namespace mneme::fuzz {
namespace {

constexpr std::int64_t pixels_max = 1 << 20;
constexpr idx_layout small_images{.rows_max = 2000};

std::function<void(bytes)> labels(const char* name) {
  return [name](bytes in) { (void)read_idx_labels(file_of(in, name), small_images.classes); };
}

std::function<void(bytes)> images(const char* name) {
  return [name](bytes in) { (void)read_idx_images(file_of(in, name), small_images, 20, 20); };
}

void read_cifar(bytes in) { (void)read_records({file_of(in, "batch.bin")}, {}, {}); }

void read_pacs(bytes in) {
  (void)read_records({file_of(in, "pacs32.bin")},
                     {.label_bytes = 2, .label_at = 1, .classes = 7, .domain_at = 0, .domains = 4}, {.rows = 30});
}

void read_small_image(bytes in) { (void)read_image(file_of(in, "image"), pixels_max); }

} // namespace

std::vector<decoder> data_decoders() {
  return {{"rows", "idx", labels("labels")},      {"rows", "gz", labels("labels.gz")},
          {"rows", "xz", labels("labels.xz")},    {"rows", "idx_images", images("images.gz")},
          {"rows", "cifar", read_cifar},          {"rows", "pacs", read_pacs},
          {"pictures", "jpeg", read_small_image}, {"pictures", "png", read_small_image}};
}

} // namespace mneme::fuzz
