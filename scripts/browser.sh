#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/browser.sh [--out DIR] [--captions MODEL]

Compiles heed to WebAssembly and writes a folder of static pages: a translator of number words that is trained in the page, and a
playground for every legal product of a score, a normalizer and a combiner. Installs what is missing (Debian 12, root or sudo).

  --out DIR          where the pages go; build/browser/pages without it
  --captions MODEL   also a page that translates captions by this model, which scripts/papers.sh sankaran2016 has trained (its row nmt
                     or temporal); the page gets its numbers as 16-bit floats

Open DIR/index.html in a browser, from the disk or from any server. Nothing else is loaded.
END
}

out='' captions=''
while (($#)); do
    case $1 in
    --out)
        [[ -n ${2:-} ]] || heed_fail "--out takes a folder"
        out=$2
        shift
        ;;
    --captions)
        [[ -r ${2:-} ]] || heed_fail "--captions takes a model file, not '${2:-}'"
        captions=$2
        shift
        ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && heed_fail "" "unknown option $1" ;;
    esac
    shift
done

heed_setup "${heed_packages_browser[@]}" libxtensor-dev nlohmann-json3-dev
build=$heed_builds/browser
out=${out:-$build/pages}
mkdir -p "$build/include" "$out"
if ! command -v emcc >/dev/null; then heed_fail "emcc is missing (Debian: emscripten)"; fi

# Only these headers of the system: /usr/include itself would hide those of emscripten.
for library in xtensor xtl nlohmann; do
    for prefix in ${CMAKE_PREFIX_PATH:+"$CMAKE_PREFIX_PATH/include"} /usr/local/include /usr/include; do
        if [[ -d $prefix/$library ]]; then
            ln -sfn "$prefix/$library" "$build/include/$library"
            break
        fi
    done
done

if [[ -n $captions ]]; then
    pack=${HEED_BROWSER_PROGRAM:-}
    if [[ -z $pack ]]; then
        heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
        heed_build demo browser
        pack=$heed_builds/demo/examples/browser
    fi
    "$pack" --pack "$captions" "$out/model.js"
fi

heed_say "Compiling heed to WebAssembly"
start=$SECONDS
# One file with the program in it: pages that are opened from the disk may not load another.
NODE_PATH=${NODE_PATH:-/usr/share/nodejs} emcc -std=c++20 -O3 -DNDEBUG -DHEED_BLAS_NONE \
    -Wall -Wextra -msimd128 -fwasm-exceptions -I"$heed_root/include" -isystem "$build/include" \
    "$heed_root/examples/browser/page.cpp" -o "$build/heed.js" \
    -sMODULARIZE=1 -sEXPORT_NAME=heed_module -sSINGLE_FILE=1 -sENVIRONMENT=web,worker -sALLOW_MEMORY_GROWTH=1 \
    -sINITIAL_MEMORY=33554432 -sFILESYSTEM=0 -sEXPORTED_RUNTIME_METHODS=ccall,HEAPF64,HEAPF32 \
    -sINCOMING_MODULE_JS_API=[] 2>"$build/log" || {
    cut -c1-400 "$build/log" | tail -n 40 >&2
    heed_fail "emcc could not compile examples/browser/page.cpp"
}
cut -c1-400 "$build/log" | grep -v '^cache:' >&2 || true
cp "$build/heed.js" "$out/heed.js"
cp "$heed_root"/examples/browser/pages/*.{html,css,js} "$out/"
cp "$heed_root/docs/pictures/number-words.svg" "$heed_root/docs/pictures/mechanisms/additive.svg" "$out/"
if [[ -z $captions ]]; then
    rm -f "$out"/captions.{html,js} "$out/model.js"
    sed -i 's|<a href="captions.html">Captions</a>||' "$out"/{index,playground}.html
fi
heed_say "Compiled in $((SECONDS - start)) s: $(du -ch --apparent-size "$out"/* | tail -n 1 | cut -f 1)"
heed_say "Open $out/index.html"
