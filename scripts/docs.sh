#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/docs.sh [--out DIR] [--no-run] [--no-browser] [--captions MODEL] [--names]

Builds the site: course, guide, mechanisms, reference, results. Installs missing packages (Debian 12, root or sudo), and
needs no network beyond that. Warnings are errors; every link within the site is checked.

If emcc is installed (Debian: emscripten), heed is also compiled to WebAssembly, and the pages of the mechanisms run it.
Otherwise these pages show pictures.

  --out DIR         the folder of the site (build/docs/site); open DIR/index.html
  --no-run          do not build and run the steps of the course; their pages then lack output and pictures
  --no-browser      no WebAssembly, even if emcc is installed
  --captions MODEL  the model of the page that translates captions; scripts/browser.sh --train makes one
  --names           only check that every public name has a complete comment; needs only Doxygen and Python
END
}

work=$heed_builds/docs
out=$work/site
run=yes
browser=yes
captions=()
only_names=no
while (($#)); do
    case $1 in
    --out)
        [[ -n ${2:-} ]] || heed_fail "--out takes a folder"
        out=$2
        shift
        ;;
    --no-run) run=no ;;
    --no-browser) browser=no ;;
    --captions)
        [[ -r ${2:-} ]] || heed_fail "--captions takes a model file, not '${2:-}'"
        captions=(--captions "$2")
        shift
        ;;
    --names) only_names=yes ;;
    -h | --help) usage && exit ;;
    *) usage >&2 && heed_fail "" "unknown option $1" ;;
    esac
    shift
done
if [[ $only_names == yes ]]; then
    heed_setup doxygen python3
    work=$(mktemp -d)  # a test may run during a build
    trap 'rm -r "$work"' EXIT
else
    heed_setup "${heed_packages_docs[@]}"
    mkdir -p "$work" "$out"
    work=$(cd "$work" && pwd)
    out=$(cd "$out" && pwd)
fi

site=$heed_root/docs/site
export PYTHONDONTWRITEBYTECODE=1
# If the site was built from these sources, their names have been checked.
checked=$heed_builds/docs/names_checked
sources=$(cd "$heed_root" && doxygen --version && find include docs/site -type f -print0 | sort -z | xargs -0 sha256sum)
if [[ $only_names == yes && -r $checked && $(<"$checked") == "$sources" ]]; then
    echo "Every public name has a complete comment: checked by a build of the site from the same sources"
    exit 0
fi
rm -rf "$work/xml"
(cd "$heed_root" && { cat docs/site/Doxyfile && printf 'OUTPUT_DIRECTORY = "%s"\n' "$work"; } | doxygen -) >"$work/doxygen.log" 2>&1 ||
    heed_fail "$(tail -n 20 "$work/doxygen.log")" "" "doxygen could not read the headers"
python3 "$site/check_names.py" --root "$heed_root" --xml "$work/xml" --pages
[[ $only_names == no ]] || exit 0
printf '%s\n' "$sources" >"$checked"

programs=()
if [[ $run == yes ]]; then
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build demo course
    heed_environment
    programs=(--programs "$heed_builds/demo/examples/course")
fi

# Debian's modules belong to /usr/bin/python3, which may not be the first python3 in PATH.
python=
for candidate in python3 /usr/bin/python3; do
    if "$candidate" -c 'import furo, myst_parser, sphinx, sphinx_copybutton' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[[ -n $python ]] || heed_fail "No python3 has Sphinx with MyST, furo and sphinx-copybutton (Debian: ${heed_packages_docs[*]})"

start=$SECONDS
rm -rf "$work/extra"
mkdir -p "$work/extra"
live=()
if [[ $browser == yes ]] && command -v emcc >/dev/null; then
    "$heed_root/scripts/browser.sh" --out "$work/live" "${captions[@]}"
    mkdir "$work/extra/live"
    cp "$work/live"/*.{html,css,js,svg} "$work/extra/live/"
    sed -i 's|<b>heed</b>|<b><a href="../index.html">heed</a></b>|' "$work/extra/live"/*.html
    live=(--live)
fi
python3 "$site/build.py" --root "$heed_root" --xml "$work/xml" --to "$work" --site "$out" "${programs[@]}" "${live[@]}"
HEED_SITE_EXTRA=$work/extra "$python" -m sphinx -q -W --keep-going -a -j auto -b html -c "$site" -d "$work/doctrees" \
    "$work/source" "$out"
python3 "$site/links.py" "$out"
heed_say "Built in $((SECONDS - start)) s: $out/index.html"
