#!/bin/sh
# Finds interpreters and makes the project's virtual environments; the Makefile calls it. POSIX sh, because it runs
# before any Python is known to work.
#
#   tools/venv.sh find any|3.12        print an interpreter that fits (any: 3.11 or newer), or say what to do
#   tools/venv.sh check 3.11 3.12 ...  find each; name every one that is missing, then fail
#   tools/venv.sh make DIR any|3.12 [PIP-ARGS...]   make DIR where needed, then pip install what is named
#
# PYTHON=/path/to/python3 takes that interpreter for "any".
set -u

say() { printf '%s\n' "$*" >&2; }

# Running a candidate is the only proof: a version manager's shim can stand on PATH for a version that is not active.
fits() { # INTERPRETER any|X.Y
    "$1" - "$2" 2>/dev/null <<'PY'
import sys
wanted = sys.argv[1]
have = sys.version_info[:2]
sys.exit(have < (3, 11) if wanted == "any" else "%d.%d" % have != wanted)
PY
}

makes_venvs() { "$1" -c 'import ensurepip, venv' 2>/dev/null; }

from_pyenv() { # X.Y
    root=${PYENV_ROOT:-}
    [ -n "$root" ] || root=$(pyenv root 2>/dev/null) || root=$HOME/.pyenv
    for found in "$root/versions/$1".*/bin/python3; do
        [ -x "$found" ] && printf '%s\n' "$found"
    done
}

candidates() { # any|X.Y
    case $1 in
        any)
            if [ -n "${PYTHON:-}" ]; then printf '%s\n' "$PYTHON"; return; fi
            printf '%s\n' python3
            for minor in 3.11 3.12 3.13; do printf '%s\n' "python$minor"; done
            for minor in 3.11 3.12 3.13; do from_pyenv "$minor"; done ;;
        *)
            printf '%s\n' "python$1" python3
            from_pyenv "$1" ;;
    esac
}

advise() { # any|X.Y, then what fits but makes no venvs
    if [ -n "$2" ]; then
        say "$2 has no ensurepip, so it cannot make a virtual environment."
        say "  Debian, Ubuntu: apt install python3-venv (for a second interpreter: python3.X-venv). Then run make again."
    elif [ "$1" != any ]; then
        say "Python $1 is missing: neither python$1 on PATH nor a pyenv version $1.* runs."
        say "  Install it (pyenv install $1, or your system's package), then run make again."
    elif [ -n "${PYTHON:-}" ]; then
        say "PYTHON=$PYTHON is not a Python 3.11 or newer that runs. Name another one, or leave PYTHON unset."
    else
        have=$(python3 --version 2>/dev/null) || have="missing, or does not run"
        say "Seawall needs Python 3.11 or newer; python3 here is $have."
        say "  Install one (Debian, Ubuntu: apt install python3 python3-venv; or pyenv install 3.12),"
        say "  or name it: make PYTHON=/path/to/python3.12 ..."
    fi
}

find_python() { # any|X.Y
    without=
    for candidate in $(candidates "$1"); do
        fits "$candidate" "$1" || continue
        if makes_venvs "$candidate"; then printf '%s\n' "$candidate"; return 0; fi
        [ -n "$without" ] || without=$candidate
    done
    advise "$1" "$without"
    return 1
}

check() {
    missing=0
    for version in "$@"; do find_python "$version" >/dev/null || missing=1; done
    return $missing
}

make_venv() { # DIR any|X.Y [PIP-ARGS...]
    dir=$1 version=$2
    shift 2
    if ! { [ -x "$dir/bin/python" ] && fits "$dir/bin/python" "$version"; }; then
        python=$(find_python "$version") || return 1
        say "Making $dir with $("$python" --version) ..."
        "$python" -m venv --clear "$dir" || { say "$python could not make $dir; what it said stands above."; return 1; }
    fi
    # Dependency groups need pip 25.1; the pip that a new environment starts with can be older.
    say "Installing into $dir: $*"
    "$dir/bin/python" -m pip install -qq 'pip>=25.1' && "$dir/bin/python" -m pip install -qq "$@" && return 0
    say "pip could not install into $dir; its reason stands above. The first run needs a package index that pip can"
    say "  reach (pip's own settings apply, a proxy too). Nothing else is needed; run make again when it answers."
    return 1
}

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1
command=${1:-}
[ $# -gt 0 ] && shift
case $command in
    find) find_python "$@" ;;
    check) check "$@" ;;
    make) make_venv "$@" ;;
    *) say "usage: tools/venv.sh find VERSION | check VERSION... | make DIR VERSION [PIP-ARGS...]"; exit 2 ;;
esac
