# SPDX-License-Identifier: BSD-3-Clause
#
# For tests of `translate serve`, after common.bash: begins and ends it, and asks it.

service=  # a process that must not outlive a test that fails
trap 'status=$?; [[ ! $service ]] || kill -9 $service 2>/dev/null || true; rm -rf -- "$directory"; ((status)) || echo passed' EXIT

# has_http MODEL: whether the program has HTTP. Where it has, another's address is refused.
has_http()
{
    if "$translate" serve --model "$1" --host 192.0.2.1 --port 0 >output 2>log </dev/null; then fail "an address of others"; fi
    ! grep -q 'built without cpp-httplib' log || return 1
    grep -q 'translate: cannot listen at 192.0.2.1' log || fail "an address of others: $(cat log)"
}
# begin COMMAND...: a service at $port; its process is $service, its messages are in `log`.
begin()
{
    : >url
    "$@" >url 2>log &
    service=$!
    for ((i = 0; i < 600; ++i)); do
        [[ ! -s url ]] || break
        kill -0 $service 2>/dev/null || fail "it does not start"
        sleep 0.05
    done
    port=$(sed 's/.*://' url)
    [[ $(cat url) == http://127.0.0.1:[0-9]* ]] || fail "its address is $(cat url)"
}
# stop [SIGNAL]: it must end with 0.
stop()
{
    kill -"${1:-TERM}" $service
    local status=0
    wait $service || status=$?
    ((status == 0)) || fail "ended with $status"
}
# raw TEXT: what comes back for these bytes, as printf has them.
raw()
{
    local connection
    exec {connection}<>"/dev/tcp/127.0.0.1/$port"
    # shellcheck disable=SC2059  # the format is the bytes
    printf "$1" >&$connection
    cat <&$connection || true
    exec {connection}>&-
}
# ask METHOD PATH BODY [HEADER...]: the whole answer.
ask()
{
    local headers=''
    for header in "${@:4}"; do headers+="$header"$'\r\n'; done
    local connection
    exec {connection}<>"/dev/tcp/127.0.0.1/$port"
    printf '%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n%sContent-Length: %s\r\n\r\n%s' "$1" "$2" "$headers" \
        "$(printf %s "$3" | wc -c)" "$3" >&$connection
    cat <&$connection || true
    exec {connection}>&-
}
# answers STATUS TEXT METHOD PATH BODY [HEADER...]: the answer has this status, and contains the text.
answers()
{
    ask "${@:3}" >answer
    [[ $(head -n 1 answer) == "HTTP/1.1 $1 "* ]] || fail "not $1 but $(head -n 1 answer): ${*:3}: $(tail -n 1 answer)"
    grep -q -F -- "$2" answer || fail "the answer has no '$2': ${*:3}: $(tail -n 1 answer)"
}
