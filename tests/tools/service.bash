# SPDX-License-Identifier: BSD-3-Clause
#
# For tests of `translate serve`, sourced after common.bash: starts and stops the service, and sends requests.

service=  # a process that must be killed if the test fails
trap 'status=$?; [[ ! $service ]] || kill -9 $service 2>/dev/null || true; rm -rf -- "$directory"; ((status)) || echo passed' EXIT

# has_http MODEL: whether the program supports HTTP. If it does, an address of another host must be rejected.
has_http()
{
    if "$translate" serve --model "$1" --host 192.0.2.1 --port 0 >output 2>log </dev/null; then fail "an address of another host is accepted"; fi
    ! grep -q 'built without cpp-httplib' log || return 1
    grep -q 'translate: cannot listen at 192.0.2.1' log || fail "wrong message for an address of another host: $(cat log)"
}
# begin COMMAND...: starts a service at $port; its process is $service, its messages are in `log`.
begin()
{
    : >url
    "$@" >url 2>log &
    service=$!
    for ((i = 0; i < 600; ++i)); do
        [[ ! -s url ]] || break
        kill -0 $service 2>/dev/null || fail "the service does not start"
        sleep 0.05
    done
    port=$(sed 's/.*://' url)
    [[ $(cat url) == http://127.0.0.1:[0-9]* ]] || fail "its address is $(cat url)"
}
# stop [SIGNAL]: the service must exit with 0.
stop()
{
    kill -"${1:-TERM}" $service
    local status=0
    wait $service || status=$?
    ((status == 0)) || fail "exit code $status"
}
# raw TEXT: prints the response to these bytes, in printf notation.
raw()
{
    local connection
    exec {connection}<>"/dev/tcp/127.0.0.1/$port"
    # shellcheck disable=SC2059  # the format is the bytes
    printf "$1" >&$connection
    cat <&$connection || true
    exec {connection}>&-
}
# ask METHOD PATH BODY [HEADER...]: the whole response.
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
# answers STATUS TEXT METHOD PATH BODY [HEADER...]: the response has this status and contains the text.
answers()
{
    ask "${@:3}" >answer
    [[ $(head -n 1 answer) == "HTTP/1.1 $1 "* ]] || fail "expected $1, got $(head -n 1 answer): ${*:3}: $(tail -n 1 answer)"
    grep -q -F -- "$2" answer || fail "the answer has no '$2': ${*:3}: $(tail -n 1 answer)"
}
