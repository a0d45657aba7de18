// MNIST: 28x28 handwritten digits (LeCun, Bottou, Bengio, Haffner 1998).
#include "runtime/data/data_sources.hpp"
#include "runtime/data/idx.hpp"
namespace mneme {
namespace {

const idx_set mnist_files{
    .files = {.data_set = "mnist",
              .folders = {"mnist", "MNIST/raw", "MNIST"},
              .names = {{"train-images-idx3-ubyte", "train-images.idx3-ubyte"},
                        {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"},
                        {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
                        {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"}},
              .remedy = "`tools/fetch_data mnist` downloads them."},
    .layout = {.height = 28, .width = 28, .classes = 10},
    .mean = 0.1307,
    .deviation = 0.3081,
};

const source_registration mnist_line{
    {.name = "mnist",
     .summary = "60,000 + 10,000 handwritten digits, gray 28x28, 10 classes; tools/fetch_data mnist",
     .files = mnist_files.files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_idx(mnist_files, data, roots); },
     .index_files = true}};

} // namespace
} // namespace mneme
