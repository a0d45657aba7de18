// Fashion-MNIST: 28x28 articles of clothing (Xiao, Rasul, Vollgraf 2017).
#include "runtime/data/data_sources.hpp"
#include "runtime/data/idx.hpp"
namespace mneme {
namespace {

const idx_set fashion_mnist_files{
    .files = {.data_set = "fashion-mnist",
              .folders = {"fashion-mnist", "FashionMNIST/raw", "FashionMNIST"},
              .names = {{"train-images-idx3-ubyte", "train-images.idx3-ubyte"},
                        {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"},
                        {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
                        {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"}},
              .remedy = "Install Debian's package dataset-fashion-mnist, or run `tools/fetch_data fashion-mnist`."},
    .layout = {.height = 28, .width = 28, .classes = 10},
    .mean = 0.2860,
    .deviation = 0.3530,
    .class_names = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag",
                    "Ankle boot"},
};

const source_registration fashion_mnist_line{
    {.name = "fashion-mnist",
     .summary = "60,000 + 10,000 articles of clothing, gray 28x28, 10 classes; Debian package dataset-fashion-mnist or "
                "tools/fetch_data fashion-mnist",
     .files = fashion_mnist_files.files,
     .load = [](const data_section& data, const auto& roots,
                std::uint64_t) { return load_idx(fashion_mnist_files, data, roots); },
     .index_files = true}};

} // namespace
} // namespace mneme
