# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with tools/bootstrap
# Debian packages for tools/bootstrap: finds missing packages, their sources, and folders for machines without a
# network. To be sourced; uses $deps, $from, fail and say.

# Runs a command as root. If that is impossible, prints the line that the user has to run.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "needs root. Run this once, then start again (docs/install.md lists what works without root):  sudo $*"; fi
}
missing() { # missing PACKAGE...: prints the packages that are not installed
  local name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null)" = "install ok installed" ] || printf '%s ' "$name"
  done
}
release() { (. /etc/os-release; echo "$VERSION_CODENAME"); }

# Installs packages from the machine's own sources, or from the folder given by --from.
install_packages() { # install_packages PACKAGE...
  local arguments=(install -y --no-install-recommends "$@")
  if [ -n "$from" ]; then
    as_root env DEBIAN_FRONTEND=noninteractive "${apt_from[@]}" update &&
      as_root env DEBIAN_FRONTEND=noninteractive "${apt_from[@]}" "${arguments[@]}"
  else
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update &&
      as_root env DEBIAN_FRONTEND=noninteractive apt-get "${arguments[@]}"
  fi
}

# -- Sources of other Debian releases; the machine's own source lists stay unchanged -----------------------------------
debian_mirror() { # $MNEME_DEBIAN_MIRROR, or the first mirror in the machine's source list
  local lists=(/etc/apt/sources.list /etc/apt/sources.list.d)
  if [ -n "${MNEME_DEBIAN_MIRROR:-}" ]; then echo "$MNEME_DEBIAN_MIRROR"; return; fi
  { grep -rhoE '^deb(-src)? +(\[[^]]*\] +)?[a-z]+://[^ ]+ +(bookworm|trixie|stable)' "${lists[@]}" 2>/dev/null |
      grep -oE '[a-z]+://[^ ]+' | grep -v security
    grep -rhE '^URIs:' "${lists[@]}" 2>/dev/null | grep -oE '[a-z]+://[^ ]+' | grep -v security | grep -E '/debian/?$'
  } | head -n 1
}
debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg
# apt_with FOLDER LINE COMMAND...: apt-get with LINE as its only source and its own package lists in FOLDER.
apt_with() {
  local state=$1 line=$2; shift 2
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  echo "$line" >"$state/sources.list"
  apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
}
apt_elsewhere() { apt_with "$deps/apt" "$@"; } # apt_elsewhere LINE COMMAND...

# -- Offline folders --------------------------------------------------------------------------------------------------
# download_packages FOLDER PACKAGE...: downloads the packages with all dependencies, also installed ones, and writes the
# index with which apt installs from the folder.
download_packages() {
  local folder=$1 deb; shift
  mkdir -p "$folder/partial"
  as_root apt-get update &&
    apt-get install -y --no-install-recommends --download-only -o Dir::State::status=/dev/null \
      -o Dir::Cache::archives="$folder" -o APT::Sandbox::User=root -o Debug::NoLocking=1 "$@" || return 1
  rm -rf "$folder/partial" "$folder/lock"
  for deb in "$folder"/*.deb; do
    dpkg-deb -f "$deb" && printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$(basename "$deb")" \
      "$(stat -c %s "$deb")" "$(sha256sum "$deb" | cut -d' ' -f1)" || return 1
  done >"$folder/Packages"
}
# use_folder FOLDER: makes the folder the only source of packages; sets apt_from.
use_folder() {
  local state=$deps/apt-from
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  echo "deb [trusted=yes] file:$1/debs ./" >"$state/sources.list"
  apt_from=(apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root)
}
# Prints the name of the Catch2 3 package in the machine's own sources; nothing if there is none.
catch2_package() {
  local package
  for package in libcatch2-dev catch2; do
    if apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: 3'; then echo "$package"; return; fi
  done
}
