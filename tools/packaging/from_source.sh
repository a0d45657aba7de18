#!/usr/bin/env bash
# from_source.sh CAF_SOURCE TORCH PREFIX: builds CAF and mneme and installs mneme in PREFIX, with the compiler and libraries
# that CMake finds; TORCH is the folder that contains torch/. Used by the recipes of conda, Spack and Nix.
set -euo pipefail
caf_source=$1 torch=$2 prefix=$3
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake -S "$caf_source" -B "$work/caf" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$work/installed" \
  -DCMAKE_CXX_STANDARD=20 -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCAF_ENABLE_TESTING=OFF \
  -DCAF_ENABLE_TOOLS=OFF -DCAF_ENABLE_EXAMPLES=OFF -DCAF_ENABLE_IO_MODULE=OFF -DCAF_ENABLE_OPENSSL_MODULE=OFF
cmake --build "$work/caf" --target install
cmake -S "$tree" -B "$work/mneme" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMNEME_CAF="$work/installed" -DMNEME_TORCH="$torch" \
  -DCMAKE_INSTALL_PREFIX="$prefix"
cmake --build "$work/mneme" --target mneme
cmake --install "$work/mneme" --strip
