# Shared by the scripts in this folder: makes the virtual environment once, and anew when pyproject.toml changes.
# Sourced, not run. Needs bash and a Python of 3.11 or newer.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv=${SCALETEST_VENV:-$root/.venv}

say() { printf '%s\n' "$*" >&2; }

die() {
  say "error: $1"
  say "  $2"
  exit "${3:-1}"
}

find_python() {
  local name
  for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
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
  # Debian leaves ensurepip, and so the ability to make an environment, to a package of its own.
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    local package
    package=python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
      say "installing $package"
      apt-get update -qq >&2 && apt-get install -y -qq "$package" >&2 ||
        die "$package could not be installed" "install it yourself, then run this again: apt-get install $package"
    else
      die "this Python cannot make a virtual environment" "sudo apt-get install $package"
    fi
  fi
  "$python" -m venv --clear "$venv" || die "no environment could be made in $venv" "remove it and run this again"
}

# ensure_environment EXTRAS: an environment with the project and these extras, editable. Quick when nothing changed.
ensure_environment() {
  local extras=$1 stamp
  stamp=$(printf '%s ' "$extras" "$root" | cat - "$root/pyproject.toml" | sha256sum | cut -d' ' -f1)
  if [ -x "$venv/bin/python" ] && grep -qsx "$stamp" "$venv/.scaletest-stamp"; then
    return
  fi
  local python
  python=$(find_python)
  say "making the environment $venv (once, a minute or two)"
  [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import pip' 2>/dev/null || make_venv "$python"
  "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable "$root[$extras]" >&2 ||
    die "the project could not be installed" "read the lines above; is the package index reachable?"
  printf '%s\n' "$stamp" >"$venv/.scaletest-stamp"
}
