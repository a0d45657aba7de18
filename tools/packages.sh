# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with tools/bootstrap
# Debian packages for tools/bootstrap: what is missing, where it comes from, folders to carry to other machines. For
# sourcing; uses $deps, $from, fail and say.

# Runs a command as root, or says which line to run.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null; then sudo "$@"
  else fail "needs root. Run this once, then start again (docs/install.md says what works without):  sudo $*"; fi
}
missing() { # missing PACKAGE...: those that are not installed
  local name
  for name in "$@"; do
    [ "$(dpkg-query -W -f '${Status}' "$name" 2>/dev/null)" = "install ok installed" ] || printf '%s ' "$name"
  done
}
release() { (. /etc/os-release; echo "$VERSION_CODENAME"); }

# Installs packages from the machine's own sources, or from the folder that --from names.
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

# -- Sources of other suites, without touching the machine's own lists -------------------------------------------------
debian_mirror() { # $MNEME_DEBIAN_MIRROR, else the first mirror in the machine's own source list
  local lists=(/etc/apt/sources.list /etc/apt/sources.list.d)
  if [ -n "${MNEME_DEBIAN_MIRROR:-}" ]; then echo "$MNEME_DEBIAN_MIRROR"; return; fi
  { grep -rhoE '^deb(-src)? +(\[[^]]*\] +)?[a-z]+://[^ ]+ +(bookworm|trixie|stable)' "${lists[@]}" 2>/dev/null |
      grep -oE '[a-z]+://[^ ]+' | grep -v security
    grep -rhE '^URIs:' "${lists[@]}" 2>/dev/null | grep -oE '[a-z]+://[^ ]+' | grep -v security | grep -E '/debian/?$'
  } | head -n 1
}
debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg
# apt_with FOLDER LINE COMMAND...: apt-get with LINE as its only source and lists of its own below FOLDER.
apt_with() {
  local state=$1 line=$2; shift 2
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  echo "$line" >"$state/sources.list"
  apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root "$@"
}
apt_elsewhere() { apt_with "$deps/apt" "$@"; } # apt_elsewhere LINE COMMAND...

# -- Folders to carry ---------------------------------------------------------------------------------------------------
# download_packages FOLDER PACKAGE...: the packages with all that they depend on, whatever this machine has of it, and
# the index by which apt installs from the folder.
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
# use_folder FOLDER: packages come from there and from nowhere else; sets apt_from.
use_folder() {
  local state=$deps/apt-from
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
  echo "deb [trusted=yes] file:$1/debs ./" >"$state/sources.list"
  apt_from=(apt-get -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State::lists="$state/lists" -o Dir::Cache="$state/cache" -o APT::Sandbox::User=root)
}
# The package of Catch2 3 that the machine's own sources have, or nothing.
catch2_package() {
  local package
  for package in libcatch2-dev catch2; do
    if apt-cache policy "$package" 2>/dev/null | grep -q 'Candidate: 3'; then echo "$package"; return; fi
  done
}
