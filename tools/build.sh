# shellcheck shell=bash
# What ./run and ./test share: a build that is silent unless it fails. Sourced from the top folder.

bold='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi

say() { printf '%s%s%s\n' "$bold" "$*" "$plain"; }

# Runs a command with its output kept in build/logs/<name>.log, and shows that only on failure.
quietly() {
    local name=$1 log=build/logs/$1.log
    shift
    mkdir -p build/logs
    if "$@" > "$log" 2>&1; then return 0; fi
    cat "$log"
    say "$name failed; the lines above are also in $log"
    return 1
}

# build PRESET [TARGET...]: configures and builds; without targets, everything. The second compiler
# takes warnings for errors; what people run must not fail for a warning their compiler invented.
build() {
    local preset=$1 strict=OFF
    shift
    if [[ $preset == asan ]]; then strict=ON; fi
    quietly "configure-$preset" cmake --preset "$preset" \
        -DCMAKE_COMPILE_WARNING_AS_ERROR=$strict || return 1
    local targets=()
    if (($# > 0)); then targets=(--target "$@"); fi
    quietly "build-$preset" cmake --build "build/$preset" --parallel "$(nproc)" "${targets[@]}"
}
