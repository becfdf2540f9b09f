#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# debian.sh SOURCE SCRATCH VERSION COMPILER [BUILT]: builds libheed-dev as scripts/debian.sh does, unpacks it, and
# compiles with its contents, found by CMake and by pkg-config. BUILT: a folder with all packages, which are used
# instead: the tools run, and a program is linked with heed::translator. Exit code 77: this machine cannot build Debian
# packages.
set -euo pipefail

source=$1 scratch=$2 version=$3 compiler=$4 built=${5:-}
export HEED_SETUP=off OPENBLAS_NUM_THREADS=1
for tool in dpkg-buildpackage dh pkg-config; do
    command -v $tool >/dev/null || { echo "skipped: there is no $tool (Debian: dpkg-dev debhelper pkgconf)" && exit 77; }
done
unset CXXFLAGS CPPFLAGS LDFLAGS DEB_BUILD_OPTIONS DEB_BUILD_PROFILES

fail()
{
    printf '%s\n' "FAILED: $*" >&2
    exit 1
}

rm -rf "$scratch"
mkdir -p "$scratch"
if [[ -z $built ]]; then
    built=$scratch/built
    "$source/scripts/debian.sh" --headers "$built" >"$scratch/log" 2>&1 ||
        fail "scripts/debian.sh --headers: $(tail -n 30 "$scratch/log")"
fi
package=$(echo "$built"/libheed-dev_*.deb)
[[ $package == */libheed-dev_"$version"-*_all.deb ]] || fail "built $package instead of libheed-dev $version"
for dependency in libxtensor-dev libxtensor-blas-dev libopenblas-dev; do
    dpkg-deb --field "$package" Depends | grep -q "\b$dependency\b" || fail "libheed-dev does not depend on $dependency"
done

root=$scratch/root
dpkg-deb --extract "$package" "$root"
diff -r --exclude=README.md "$source/include" "$root/usr/include" >/dev/null || fail "usr/include differs from include"
others=$(cd "$root" && find . -type f ! -path './usr/include/*' | sort)
unexpected=$(grep -v -e '^\./usr/share/cmake/heed/heed[A-Za-z_]*\.cmake$' -e '^\./usr/share/pkgconfig/heed\.pc$' \
    -e '^\./usr/share/doc/libheed-dev/' <<<"$others" || true)
[[ -z $unexpected ]] || fail "libheed-dev holds $unexpected"
if grep -r -e "$source" -e "$scratch" "$root/usr/share"; then fail "libheed-dev names a folder of its build"; fi
# For all architectures: no file names an architecture's folder.
if grep -r "$(dpkg-architecture -qDEB_HOST_MULTIARCH)" "$root/usr/share/cmake" "$root/usr/share/pkgconfig"; then
    fail "libheed-dev is for all architectures, but names its build architecture"
fi

here=$source/tests/package
cmake -S "$here/installed" -B "$scratch/use" "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_PREFIX_PATH=$root/usr" \
    "-DHEED_VERSION=$version" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
grep -q "^heed_DIR:PATH=$root/usr/share/cmake/heed$" "$scratch/use/CMakeCache.txt" || fail "CMake found another heed"
cmake --build "$scratch/use" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
"$scratch/use/installed" || fail "the program built with find_package(heed)"

export PKG_CONFIG_PATH=$root/usr/share/pkgconfig
pkg-config --validate heed || fail "heed.pc is not valid for pkg-config"
[[ $(pkg-config --modversion heed) == "$version" ]] || fail "heed.pc has version $(pkg-config --modversion heed)"
# shellcheck disable=SC2046  # flags are words
"$compiler" "$here/consumer/pkg_config.cpp" $(pkg-config --cflags --libs heed) -o "$scratch/program"
"$scratch/program" || fail "the program built with pkg-config's flags"

# ---- the compiled packages, if they were built -------------------------------------------------------------------------

tools=$(echo "$built"/heed-tools_*.deb)
[[ -e $tools ]] || exit 0
translator=$(echo "$built"/libheed-translator-dev_*.deb)
dpkg-deb --extract "$tools" "$root"
dpkg-deb --extract "$translator" "$root"
dpkg-deb --extract "$(echo "$built"/libheed-compiled-dev_*.deb)" "$root"
for program in translate evaluate; do
    [[ $("$root/usr/bin/$program" --version) == "$program (heed) $version"* ]] || fail "$program --version"
    [[ -e $root/usr/share/man/man1/$program.1.gz ]] || fail "$program has no manual page"
    for shell in bash-completion/completions/$program zsh/site-functions/_$program fish/vendor_completions.d/$program.fish; do
        [[ -e $root/usr/share/$shell ]] || fail "$shell is missing"
    done
done

printf '%s\n' 'one' 'two one' 'three' 'one two' >"$scratch/text.a"
printf '%s\n' 'eins' 'eins zwei' 'drei' 'zwei eins' >"$scratch/text.b"
"$root/usr/bin/translate" train --source "$scratch/text.a" --target "$scratch/text.b" --valid-source "$scratch/text.a" \
    --valid-target "$scratch/text.b" --model "$scratch/model.safetensors" --embedding 8 --hidden 8 --alignment 8 \
    --epochs 1 --threads 1 >"$scratch/log" 2>&1 || fail "translate train: $(cat "$scratch/log")"

mkdir "$scratch/trained"
cat >"$scratch/trained/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(trained LANGUAGES CXX)
find_package(heed $version REQUIRED COMPONENTS translator raw_text)
add_executable(trained "$here/consumer/trained.cpp")
target_link_libraries(trained PRIVATE heed::translator)
END
cmake -S "$scratch/trained" -B "$scratch/trained" "-DCMAKE_CXX_COMPILER=$compiler" "-DCMAKE_PREFIX_PATH=$root/usr" \
    -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
cmake --build "$scratch/trained" >"$scratch/log" 2>&1 || fail "$(cat "$scratch/log")"
lines=$("$scratch/trained/trained" "$scratch/model.safetensors" | wc -l)
((lines == 2)) || fail "the program that links heed::translator translates two lines as $lines"

PKG_CONFIG_PATH+=:$(dirname "$(find "$root/usr/lib" -name heed-translator.pc)")
# shellcheck disable=SC2046
"$compiler" "$here/consumer/trained.cpp" $(pkg-config --cflags --libs heed-translator) -o "$scratch/program"
lines=$("$scratch/program" "$scratch/model.safetensors" | wc -l)
((lines == 2)) || fail "the program built with pkg-config's flags translates two lines as $lines"

PKG_CONFIG_PATH+=:$(dirname "$(find "$root/usr/lib" -name heed-compiled.pc)")
# shellcheck disable=SC2046
"$compiler" "$source/tests/compiled/step.cpp" $(pkg-config --cflags --libs heed-compiled) -o "$scratch/program"
[[ $("$scratch/program") =~ ^(sse2|avx2|avx512|avx512_vnni|avx512_bf16|avx512_amx)\  ]] || fail "the program built with heed-compiled.pc"
echo "libheed-dev, libheed-compiled-dev, libheed-translator-dev and heed-tools $version: unpacked and used"
