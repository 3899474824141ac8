# Functions for the scripts in this folder: the virtual environment, which is created once and again when pyproject.toml
# changes, Debian packages and tools. Sourced, not run. Needs bash and a Python of 3.11 or newer.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${SCALETEST_VENV:-$root/.venv}

# Tests and commands start hundreds of Python processes, each of which would compile all that it imports.
unset PYTHONDONTWRITEBYTECODE

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $1"
  say "  $2"
  exit "${3:-1}"
}

find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1 &&
      "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$name"
      return
    fi
  done
  die "no Python of version 3.11 or newer was found" "install one: apt-get install python3 python3-venv"
}

make_venv() {
  local python=$1
  # Debian has ensurepip, which virtual environments need, in a package of its own.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    local package
    package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
      say "installing $package"
      apt-get update -qq >&2 && apt-get install -y -qq "$package" >&2 ||
        die "$package could not be installed" "install it yourself, then run this again: apt-get install $package"
    else
      die "this Python cannot create a virtual environment" "sudo apt-get install $package"
    fi
  fi
  "$python" -m venv --clear "$venv" || die "the virtual environment $venv could not be created" "remove it and run this again"
}

# ensure_environment: installs the project, editable, and what its development needs into the virtual environment. Quick
# when nothing changed.
ensure_environment() {
  local stamp
  stamp=$(printf '%s ' "$root" | cat - "$root/pyproject.toml" | sha256sum | cut -d' ' -f1)
  if [ -x "$venv/bin/python" ] && grep -qsx "$stamp" "$venv/.scaletest-stamp"; then
    return
  fi
  local python
  python=$(find_python)
  if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import pip' 2>/dev/null; then
    say "bringing the virtual environment $venv up to date"
  else
    say "creating the virtual environment $venv (once, a minute or two)"
    make_venv "$python"
  fi
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root[dev]" >&2 ||
    die "the project could not be installed" "read the lines above; is the package index reachable?"
  printf '%s\n' "$stamp" >"$venv/.scaletest-stamp"
}

# Debian packages for tests, by a program that each has. redis-server, openssl: TLS, Sentinel, a replica (beside the
# server of the wheel). prometheus: the dashboard and the alert rules. chromium, chromium-driver: pages and reports.
# curl: the calls of scripts. npm: axe-core. ffmpeg, onevpl-tools: transcodes. buildah,
# debootstrap, podman, runc: images (crun does not support mixed cgroup versions).
# iproute2 up to ssh: benchmarks. groff, mandoc: the manual page. cc: a clock for Redis that can be set.
declare -A test_packages=(
  [redis-server]=redis-server [openssl]=openssl [promtool]=prometheus [chromium]=chromium
  [chromedriver]=chromium-driver [curl]=curl [npm]=npm [ffmpeg]=ffmpeg [sample_multi_transcode]=onevpl-tools
  [buildah]=buildah [debootstrap]=debootstrap [podman]=podman [runc]=runc
  [ip]=iproute2 [iperf]=iperf [iperf3]=iperf3 [fio]=fio [mpirun]=openmpi-bin [mpicc]=libopenmpi-dev [ib_read_bw]=perftest [ssh]=openssh-client
  [groff]=groff-base [mandoc]=mandoc [cc]="gcc libc6-dev"
)

# missing_test_packages [PROGRAM | node ...]: prints the packages of these programs that are not installed; node stands
# for the packages of the cluster tier's real node. Without arguments it checks all packages.
missing_test_packages() {
  [ $# -gt 0 ] || set -- "${!test_packages[@]}" node
  local name
  for name; do
    if [ "$name" = node ]; then
      (cd "$root" && python3 -m hack.kubernetes missing) || return
    elif ! command -v "$name" >/dev/null 2>&1; then
      echo "${test_packages[$name]}"
    fi
  done
}

# install_packages PACKAGE ...: installs Debian packages without starting their daemons: tests start their own, which
# need the ports and sockets.
install_packages() (
  [ $# -gt 0 ] || return 0
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 ||
    die "missing packages, which only root can install: $*" "apt-get install $*; then run this again"
  say "installing $*"
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy"
  fi
  apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null
)

build_tool() {
  local began=$SECONDS
  "$root/hack/tool" "$1" >/dev/null && echo "tool $1: $((SECONDS - began)) s"
}

# build_tools NAME ...: builds tools of the cluster tier, once a version; later calls find them in the cache. The first
# installs the compiler; the others are built two at a time, since one fetches its sources while the other is compiled.
build_tools() {
  build_tool "$1" || return
  shift
  [ $# -gt 0 ] || return 0
  export -f build_tool
  printf '%s\n' "$@" | root=$root xargs -n 1 -P 2 bash -c 'build_tool "$0"'
}
