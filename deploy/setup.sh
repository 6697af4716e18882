# Set-up shared by deploy/serve and tests/run. Sourced, never run; needs bash.
# Everything here may be run again at any time: what is done already is recognised by a stamp and skipped.

ROOT=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
VENV=$ROOT/.venv
LOCKS=$ROOT/deploy/locks
MISSING_PACKAGES=()
IS_PYTHON_RIGHT='import sys; print((3, 11) <= sys.version_info < (3, 15))'

say() { printf '%s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }

set_up_server() {
    hold_setup_lock
    trap 'say "stopped; run it again to go on"; exit 130' INT TERM
    check_machine
    DEVICE=$(find_device)
    need_debian_package espeak-ng command -v espeak-ng
    install_debian_packages
    make_venv
    install_group pip --no-deps "$LOCKS/pip.txt"
    if [ "$DEVICE" = cuda ]; then
        install_group server "$LOCKS/cuda.txt"
    else
        install_group server --no-deps "$LOCKS/cpu.txt"
    fi
    install_project
    "$VENV/bin/python" -P -m engines.weights fetch
}

# After set_up_server.
set_up_tests() {
    need_debian_package pocketsphinx-testdata test -d /usr/share/pocketsphinx/test/data
    need_debian_package chromium has_chromium
    need_debian_package nginx has_nginx
    need_debian_package redis-server has_redis
    install_debian_packages
    has_coturn >/dev/null 2>&1 || say "apt-get knows no coturn: the tests of calls through a TURN server are skipped"
    install_group tests --no-deps "$LOCKS/test.txt"
}

has_chromium() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

# Unpacked beside the venv will do: installed they would also serve, on ports of their own.
has_nginx() { PATH=$PATH:/usr/sbin command -v nginx || [ -x "$VENV/nginx/usr/sbin/nginx" ] || unpack nginx nginx; }

has_redis() {
    command -v redis-server || [ -x "$VENV/redis/usr/bin/redis-server" ] || unpack redis $(needed_for redis-server)
}

has_coturn() {
    command -v turnserver || [ -x "$VENV/coturn/usr/bin/turnserver" ] || unpack coturn $(needed_for coturn)
}

# The Debian packages that installing PACKAGE would bring, itself among them.
needed_for() { apt-get --simulate --no-install-recommends install "$1" | awk '/^Inst/ { print $2 }'; }

# unpack FOLDER PACKAGE…: into .venv/FOLDER.
unpack() {
    local folder=$VENV/$1 download=$VENV/$1.download outcome=0 file
    shift
    [ $# -gt 0 ] || return
    mkdir -p "$download"
    (cd "$download" && apt-get download "$@") || outcome=1
    for file in "$download"/*.deb; do
        [ $outcome = 0 ] && { dpkg-deb -x "$file" "$folder" || outcome=1; }
    done
    rm -rf "$download"
    return $outcome
}

# What was started afterwards must not hold the lock, nor inherit the trap.
end_set_up() {
    exec 9>&-
    trap - INT TERM
}

hold_setup_lock() {
    exec 9>"$ROOT/.setup.lock"
    flock --nonblock 9 && return
    say "another set-up is running in $ROOT; waiting for it"
    flock 9
}

check_machine() {
    local machine
    machine=$(uname -sm)
    [ "$machine" = "Linux x86_64" ] || fail "Antiphon's lock files are for Linux x86_64, and this is $machine: run it in a container or on another machine."
}

# cpu or cuda: what ANTIPHON_DEVICE says, else whether there is an NVIDIA driver.
find_device() {
    if [ -n "${ANTIPHON_DEVICE:-}" ]; then
        case $ANTIPHON_DEVICE in
            cpu | cuda) printf %s "$ANTIPHON_DEVICE" ;;
            *) fail "ANTIPHON_DEVICE: expected cpu or cuda, got $ANTIPHON_DEVICE" ;;
        esac
    elif [ -e /proc/driver/nvidia/version ] || nvidia-smi --list-gpus >/dev/null 2>&1; then
        printf cuda
    else
        printf cpu
    fi
}

# need_debian_package PACKAGE TEST…: remember PACKAGE as missing when the command TEST fails.
need_debian_package() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || MISSING_PACKAGES+=("$package")
}

install_debian_packages() {
    [ ${#MISSING_PACKAGES[@]} -gt 0 ] || return 0
    local names="${MISSING_PACKAGES[*]}"
    command -v apt-get >/dev/null || fail "Missing: $names. Install it with your system's package manager, then run this again."
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || fail "Missing Debian packages. Run this, then try again: sudo apt-get install -y $names"
        as_root=(sudo -n)
    fi
    say "installing Debian packages: $names"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${MISSING_PACKAGES[@]}")
    "${install[@]}" >&2 || { "${as_root[@]}" apt-get update -qq >&2 && "${install[@]}" >&2; } ||
        fail "apt-get could not install: $names. Its message is above."
    MISSING_PACKAGES=()
}

# The first of $PYTHON, python3, python3.14 … python3.11 that is new enough.
find_python() {
    local candidate
    for candidate in ${PYTHON:+"$PYTHON"} ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if [ "$("$candidate" -c "$IS_PYTHON_RIGHT" 2>/dev/null)" = True ]; then
            printf %s "$candidate"
            return
        fi
    done
    local found
    found=$("${PYTHON:-python3}" -V 2>&1 | tail -n 1) || true
    [[ $found == Python* ]] || found="no Python"
    fail "Antiphon needs Python 3.11 to 3.14, and ${PYTHON:-python3} is $found: install one, or name it, as in PYTHON=/path/to/python3.12 deploy/serve."
}

# A venv that is half made, broken off in the middle of an installation, or for another device is made anew;
# pip's cache keeps what it had downloaded.
make_venv() {
    if [ -d "$VENV" ]; then
        if [ ! -e "$VENV/.installing" ] && "$VENV/bin/python" -c 'import pip' 2>/dev/null &&
            [ "$(cat "$VENV/.device" 2>/dev/null || printf %s "$DEVICE")" = "$DEVICE" ]; then
            printf %s "$DEVICE" >"$VENV/.device"
            return
        fi
        say "making .venv anew: it was left unfinished, or was for another device"
        rm -rf "$VENV"
    fi
    local python
    python=$(find_python)
    need_debian_package python3-venv "$python" -c 'import ensurepip'
    install_debian_packages
    say "making .venv with $("$python" -V)"
    "$python" -m venv "$VENV" || fail "Python's venv failed; its message is above."
    printf %s "$DEVICE" >"$VENV/.device"
}

# install_group NAME [--no-deps] LOCK: bring the venv to LOCK, unless its stamp says so already.
install_group() {
    local stamp=$VENV/.ready-$1 lock=${*: -1} want
    want=$(sha256sum <"$lock")
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    say "installing $(grep -c == "$lock") Python packages (deploy/locks/$(basename "$lock")$(size_of "$lock"))"
    touch "$VENV/.installing"
    [ "$(basename "$lock")" != cpu.txt ] || announce_cuda_torch
    pip_install "${@:2:$#-2}" -r "$lock"
    if [ "$(basename "$lock")" = cpu.txt ] && torch_wants_cuda; then
        pip_install --no-deps -r "$LOCKS/torch-cuda.txt"
    fi
    rm "$VENV/.installing"
    printf %s "$want" >"$stamp"
}

size_of() {
    case $(basename "$1") in
        cpu.txt) printf ', 2.7 GB on disk' ;;
        cuda.txt) printf ', with CUDA many GB on disk' ;;
        test.txt) printf ', 0.5 GB on disk' ;;
    esac
}

# The project itself, editable. Its commands hold the path of this folder, so a moved folder is installed again.
install_project() {
    local stamp=$VENV/.ready-project want
    want=$(printf %s "$ROOT" | cat - "$ROOT/pyproject.toml" | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$want" ] && return
    pip_install --no-deps --no-build-isolation -e "$ROOT"
    printf %s "$want" >"$stamp"
}

pip_install() {
    PIP_USER=0 "$VENV/bin/python" -m pip --disable-pip-version-check install --progress-bar off "$@" 2>&1 | show_long_steps || {
        tail -n 5 "$VENV/pip.log" >&2
        fail "pip could not install; its message is above, the whole of it in .venv/pip.log. Run this again to go on."
    }
}

# Keeps what pip says in .venv/pip.log; says itself only which downloads and which step take more than a moment.
show_long_steps() {
    local line
    while IFS= read -r line; do
        printf '%s\n' "$line"
        if [[ $line =~ Downloading\ ([^-]+-[^-]+)-.*\(([0-9]{2,}\.[0-9]\ MB|.*GB)\) ]]; then
            say "  downloading ${BASH_REMATCH[1]}, ${BASH_REMATCH[2]}"
        elif [[ $line == "Installing collected packages:"*,*,*,* ]]; then
            say "  unpacking them"
        fi
    done >"$VENV/pip.log"
}

announce_cuda_torch() {
    local found
    found=$("$VENV/bin/python" -m pip --disable-pip-version-check install --quiet --dry-run --ignore-installed --no-deps --report - \
        "$(grep '^torch==' "$LOCKS/cpu.txt")" 2>/dev/null) || return 0
    [[ $found == *+cpu* || $found == *%2Bcpu* ]] ||
        say "pip finds only the CUDA build of torch, which needs 3 GB more than the CPU build: deploy/README.md tells how to point pip at that."
}

torch_wants_cuda() {
    "$VENV/bin/python" -c 'import importlib.metadata as m, sys; sys.exit(not any(r.startswith("nvidia-") for r in m.requires("torch")))'
}
