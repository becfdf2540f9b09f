#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<END
usage: scripts/browser.sh [--out DIR] [--captions MODEL | --train DATA]

Compiles heed to WebAssembly and writes a folder of static pages: a translator of number words that trains in the page,
a playground for every legal product of a score, a normalizer and a combiner, and, given a model, a translator of
captions. Installs missing packages (Debian 12, root or sudo).

  --out DIR          the folder of the pages (default: build/browser/pages)
  --train DATA       trains the captions model (42 minutes on a busy machine) and prints its BLEU. DATA is a folder with
                     train.en train.de val.en val.de test2016.en test2016.de, tokenized: Multi30k, task 1, the
                     *.lc.norm.tok.* files. The model is stored in build/browser; run again to resume
  --captions MODEL   uses this model of \`translate train --system sankaran\`, additive or temporal, at most 8 MB as a
                     script with 16-bit floats (default: the model of --train)

Open DIR/index.html in a browser, from disk or from any server. The pages load nothing else.

Environment: TRAIN replaces the training options:
  TRAIN="$train"
END
}

train=${TRAIN:-"--attention temporal --bpe 5000 --embedding 160 --hidden 160 --alignment 160 --batch 32 --learning-rate 0.0015 \
--dropout 0.3 --label-smoothing 0.1 --epochs 14 --halve-from 10 --average 4"}
out='' captions='' data=''
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
    --train)
        data=${2:-}
        for file in {train,val,test2016}.{en,de}; do
            [[ -r $data/$file ]] || heed_fail "--train takes a folder with the text: $data/$file cannot be read"
        done
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

# Only these system headers: /usr/include itself would hide the headers of emscripten.
for library in xtensor xtl nlohmann; do
    for prefix in ${CMAKE_PREFIX_PATH:+"$CMAKE_PREFIX_PATH/include"} /usr/local/include /usr/include; do
        if [[ -d $prefix/$library ]]; then
            ln -sfn "$prefix/$library" "$build/include/$library"
            break
        fi
    done
done

browser=${HEED_BROWSER_PROGRAM:-}
need_browser()
{
    [[ -z $browser ]] || return 0
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build demo browser
    browser=$heed_builds/demo/examples/browser
}

model=$build/captions.safetensors
if [[ -n $data ]]; then
    translate=${HEED_TRANSLATE_PROGRAM:-}
    need_browser
    if [[ -z $translate ]]; then
        heed_build tools translate
        translate=$heed_builds/tools/tools/translate
    fi
    heed_environment
    if [[ ! -e $model.done ]]; then
        resume=()
        [[ ! -e $model.checkpoint ]] || resume=(--resume)
        heed_say "Training the captions model: $train"
        # shellcheck disable=SC2086  # $train is a list of options
        "$translate" train --threads 1 --source "$data/train.en" --target "$data/train.de" --valid-source "$data/val.en" \
            --valid-target "$data/val.de" --model "$model" --log "$build/captions.csv" --system sankaran $train "${resume[@]}"
        touch "$model.done"
    fi
    # As in the page: 16-bit floats, beam 6.
    "$browser" --round "$model" "$build/rounded.safetensors"
    heed_say "Translating test2016 with the page's model"
    "$translate" score --threads 1 --model "$build/rounded.safetensors" --source "$data/test2016.en" --target "$data/test2016.de" --beam 6
fi
if [[ -z $captions && -e $model.done ]]; then captions=$model; fi
rm -f "$out/model.js"
if [[ -n $captions ]]; then
    need_browser
    "$browser" --pack "$captions" "$out/model.js"
fi

# Compiling takes minutes, so skip it if no source has changed.
start=$SECONDS
if [[ -e $build/heed.js && -z $(find "$heed_root/include" "$heed_root/examples/browser" "$heed_root/scripts/browser.sh" \
    -type f ! -path '*/pages/*' -newer "$build/heed.js" -print -quit) ]]; then
    heed_say "heed as WebAssembly is up to date"
else
    heed_say "Compiling heed to WebAssembly"
    mkdir -p "$build/new"
    # A single file that contains the program: pages opened from disk may not load others.
    NODE_PATH=${NODE_PATH:-/usr/share/nodejs} emcc -std=c++20 -O3 -DNDEBUG -DHEED_BLAS_NONE \
        -Wall -Wextra -msimd128 -fwasm-exceptions -I"$heed_root/include" -isystem "$build/include" \
        "$heed_root/examples/browser/page.cpp" -o "$build/new/heed.js" \
        -sMODULARIZE=1 -sEXPORT_NAME=heed_module -sSINGLE_FILE=1 -sENVIRONMENT=web,worker -sALLOW_MEMORY_GROWTH=1 \
        -sINITIAL_MEMORY=33554432 -sFILESYSTEM=0 -sEXPORTED_RUNTIME_METHODS=ccall,HEAPF64,HEAPF32 \
        -sINCOMING_MODULE_JS_API=[] 2>"$build/log" || {
        cut -c1-400 "$build/log" | tail -n 40 >&2
        heed_fail "emcc could not compile examples/browser/page.cpp"
    }
    cut -c1-400 "$build/log" | grep -v '^cache:' >&2 || true
    mv -f "$build/new/heed.js" "$build/heed.js"
fi
cp "$build/heed.js" "$out/heed.js"
cp "$heed_root"/examples/browser/pages/*.{html,css,js} "$out/"
cp "$heed_root/docs/pictures/number-words.svg" "$heed_root/docs/pictures/mechanisms/additive.svg" "$out/"
if [[ -z $captions ]]; then sed -i '/<script src="model.js">/d' "$out/captions.html"; fi
heed_say "Written in $((SECONDS - start)) s: $(du -ch --apparent-size "$out"/* | tail -n 1 | cut -f 1)"
heed_say "Open $out/index.html"
