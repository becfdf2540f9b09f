#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `translate serve`: its answers and errors, equality with `translate run`, its limits, bad clients, and shutdown.
client=$(realpath -- "$3")
here=$(cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tools/common.bash
source "$here/common.bash"
# shellcheck source=tests/tools/service.bash
source "$here/service.bash"
sentences 100 1 train
sentences 12 2 valid
head -n 30 train.a >some.a
train --epochs 15 --learning-rate 0.02 || fail "training"  # so that its translations are not empty
train --model none.safetensors --attention none --epochs 1 || fail "training without attention"
printf '#version: 0.2\no n\nt w\n' >codes
"$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b --model pieces.safetensors \
    --system transformer --embedding 8 --hidden 8 --heads 2 --batch 8 --epochs 1 --bpe-codes codes --threads 1 2>log || fail "training a transformer"

# Lines: an empty line, an invalid one, and one that is too long.
"$translate" run --model model.safetensors --input valid.a --min-length 0 >offline 2>log || fail "translating"
serve() { "$translate" serve --threads 1 "$@"; }
serve --model model.safetensors --stdin <valid.a >lines 2>log || fail "lines"
(($(sort -u offline | wc -l) > 5)) || fail "the model has learned nothing: $(cat offline)"
cmp lines offline || fail "lines are translated differently"
grep -q 'translated 12 sentences in ' log || fail "the log has no summary: $(cat log)"
long=$(printf 'one %.0s' {1..30})
status=0
printf 'one two\n\n\xff\n%s\r\nthree\r\n' "$long" | serve --model model.safetensors --stdin --max-length 20 --queue 2 >lines 2>log || status=$?
((status == 1)) || fail "failed lines: exit code $status"
(($(wc -l <lines) == 5)) && [[ $(sed -n 2,4p lines) == $'\n\n' || -z $(sed -n 2,4p lines) ]] || fail "lines are out of order: $(cat lines)"
grep -q 'translate: line 3: byte 1 is not valid UTF-8' log || fail "no message for invalid text: $(cat log)"
grep -q 'translate: line 4: text has 30 tokens; at most 20' log || fail "no message for a line that is too long: $(cat log)"
[[ $(sed -n 1p lines) == "$(echo one two | "$translate" run --model model.safetensors 2>>log)" ]] || fail "the first line"

# An endless line is rejected once it is too long; the lines before it are answered.
status=0
{ head -n 2 valid.a && head -c 20000000 /dev/zero; } | serve --model model.safetensors --stdin >lines 2>log || status=$?
((status == 1)) || fail "a line without an end ends with $status"
head -n 2 offline | cmp - lines || fail "the lines before one without an end: $(cat lines)"
grep -q 'standard input:3: a line has more than 16777216 bytes' log || fail "no message for a line without an end: $(cat log)"

# No line is lost, even with a short queue.
for ((i = 0; i < 15; ++i)); do cat valid.a; done >many
"$translate" run --model model.safetensors --input many --beam 1 --threads 1 >offline.many 2>log || fail "translating many lines"
for limits in '1 1' '1 2' '64 3'; do
    read -r batch queue <<<"$limits"
    "$translate" serve --threads 2 --model model.safetensors --stdin --beam 1 --batch "$batch" --queue "$queue" <many >lines 2>log ||
        fail "180 lines with a queue of $queue"
    cmp lines offline.many || fail "180 lines with a queue of $queue and batches of $batch differ from translate run"
done

# A signal ends the program after it has written the translations of the lines read, even if the input has not ended.
mkfifo input
"$translate" serve --threads 1 --model model.safetensors --stdin <input >lines 2>log &
service=$!
exec 9>input
head -n 5 valid.a >&9
for ((i = 0; i < 600; ++i)); do
    (($(wc -l <lines) < 5)) || break
    sleep 0.05
done
head -n 5 offline | cmp - lines || fail "lines are not answered immediately"
kill -INT $service
status=0
wait $service || status=$?
exec 9>&-
((status == 0)) || fail "SIGINT: exit code $status"

# The commands of docs/how_to/service.md, with a small model.
page=$here/../../docs/how_to/service.md
for name in en-de one two; do ln -s model.safetensors $name.safetensors; done
ln -s valid.a sentences
translate() { exec "$translate" "$@"; }
command=$(grep '^    tail -f ' "$page") || fail "docs/how_to/service.md has no lines on standard input"
(
    tail() { cat -- "$2"; }  # the real one would wait for more
    eval "$command"
) >lines 2>log || fail "docs/how_to/service.md: $command"
cmp lines offline || fail "docs/how_to/service.md translates lines differently"

serve --help >help
awk 'length > 100' help | grep . && fail "--help is wider than 100 columns"
contradicts '--beam 100 is greater than --max-beam 64' "$translate" serve --model model.safetensors --beam 100 --stdin
refused 'nowhere: cannot be opened' "$translate" serve --model nowhere --port 0
misused '--queue' serve --model model.safetensors --queue 0
misused '--port' serve --model model.safetensors --port 65536
misused '--timeout' serve --model model.safetensors --timeout nan
if ! has_http model.safetensors; then
    echo 'without cpp-httplib: HTTP is not tested'
    exit 0
fi

model=model.safetensors
# start OPTION...: starts a service of $model, see begin.
start() { begin "$translate" serve --threads 1 --model "$model" --port 0 "$@"; }
translates() { answers "$1" "$2" POST /translate "$3"; }

# Its address cannot be printed: it ends. Its log cannot be written: it answers.
# shellcheck disable=SC2016  # for the inner shell
{
    refused 'cannot write to standard output: No space left on device' bash -c '"$@" >/dev/full' - "$translate" serve --model $model --port 0
    begin bash -c 'exec "$@" 2>/dev/full' - "$translate" serve --model $model --port 0
}
translates 200 '"translations":' '{"text": "one two"}'
stop

# The commands of the page: the service answers each, with the members shown.
members() { grep -o '"[a-z_]*":'; }
command=$(grep '^    curl ' "$page") shown=$(grep -A 1 '^    curl ' "$page" | sed 1d)
curl()
{
    [[ $1 == http://127.0.0.1:8080/translate && $2 == --json && $# == 3 ]] || fail "docs/how_to/service.md has another request: $*"
    ask POST /translate "$3" | tail -n 1
}
count=0
while read -r line; do
    [[ $line == *' --port '* ]] || line+=' --port 0'
    begin eval "$line"
    [[ $(eval "$command" | members) == "$(members <<<"$shown")" ]] || fail "docs/how_to/service.md shows an answer that differs from $(eval "$command")"
    stop
    count=$((count + 1))
done < <(grep '^    translate serve ' "$page" | sed 's/#.*//')
((count == 3)) || fail "docs/how_to/service.md starts $count services"

start --max-length 20 --max-size 5000 --queue 50
translates 200 '{"translations":[{"text":"' '{"text": "one two"}'
translates 200 '"text":"","words":[]' '{"text": ""}'
translates 200 '{"translations":[]}' '{"text": []}'
translates 200 '"alternatives":[' '{"text": ["one", "two three"], "alternatives": 3}'
[[ $(grep -o '"score":' answer | wc -l) == 8 ]] || fail "not three alternatives of two texts: $(cat answer)"
translates 200 '"source":["one","two","</s>"]' '{"text": "one two", "alignment": true, "beam": 1}'
grep -q '"alignment":\[\[[0-9.,]*\],' answer || fail "no weights: $(cat answer)"
translates 200 '"score":' '{"text": "one\ntwo\u0000", "length_penalty": 0, "coverage_penalty": 0.5, "block_ngrams": 2}'
head -n 3 valid.a >three
"$translate" run --model model.safetensors --input three --n-best 2 --batch 1 --threads 1 >best 2>/dev/null || fail "lists"
while read -r line && read -r -u 8 expected && read -r -u 8 _; do
    translates 200 '"alternatives"' "{\"text\": \"$line\", \"alternatives\": 2}"
    [[ $(tail -n 1 answer) == *"\"score\":$(echo "${expected##*|||}" | awk '{ print $1 + 0 }')"* ]] || fail "a different score: $expected: $(tail -n 1 answer)"
done <three 8<best

translates 400 'no body' ''
translates 400 'unexpected end of input' '{"text": '
for body in '["one"]' '[["one"]]' '[{"text": "one"}]' '1' 'null' '"text"' '[]'; do translates 400 'not an object' "$body"; done
translates 400 'text is missing' '{}'
translates 400 'text must be a string' '{"text": 1}'
for text in '[["one"]]' '["one", 1]' '[1, "one"]' '{"text": "one"}' '["one", ["two"]]' '["one", {"text": "one"}]' null true; do
    translates 400 'text must be a string' "{\"text\": $text}"
done
translates 200 '"translations":[{"text":""' '{"text": 1, "beam": [2], "text": "", "beam": 1}'  # of equal names the last
translates 400 'more than 3 levels' "$(printf '[%.0s' {1..2000})"
translates 400 'ill-formed UTF-8' $'{"text": "\xff"}'
translates 400 '\"bean\" is not known' '{"text": "one", "bean": 2}'
translates 400 'beam must be an integer from 1 to 64, not 1000000000' '{"text": "one", "beam": 1000000000}'
for beam in 0 -1 1.5 1e9 '"2"' null '[1]' '{"a": {"b": 1}}' 99999999999999999999; do translates 400 'beam must be an integer' "{\"text\": \"one\", \"beam\": $beam}"; done
for penalty in -1 11 1e999 '"x"'; do translates 400 '' "{\"text\": \"one\", \"length_penalty\": $penalty}"; done
translates 400 '3 alternatives with a beam of 2' '{"text": "one", "beam": 2, "alternatives": 3}'
translates 400 'alignment must be true or false' '{"text": "one", "alignment": 1}'
translates 413 'text has 30 tokens; at most 20' "{\"text\": \"$long\"}"
translates 413 'text 1 has 1000 bytes; at most 640' "{\"text\": [\"one\", \"$(printf 'x%.0s' {1..1000})\"]}"
translates 413 '51 texts in one request; at most 50' "{\"text\": [$(printf '"one",%.0s' {1..50})\"one\"]}"
translates 413 'the body has 6015 bytes; at most 5000' "{\"text\": \"$(printf 'x%.0s' {1..6003})\"}"
answers 405 'Allow: POST' GET /translate ''
answers 405 'only GET, HEAD is allowed' POST /metrics ''
answers 403 '--allow-origin' OPTIONS /translate '' 'Origin: http://example.com'
answers 405 'only POST' OPTIONS /translate ''
answers 403 '--allow-origin' POST /translate '{"text": "one"}' 'Origin: http://example.com'
answers 200 '"text":' POST /translate '{"text": "one"}' 'Origin: http://localhost'
[[ $(raw 'GET /health HTTP/1.1\r\nHost: example.com\r\n\r\nGET /health HTTP/1.0\r\n\r\n' | head -n 1) == 'HTTP/1.1 403 '* ]] || fail "a request to another host"
[[ $(raw 'POST /translate HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}' | head -n 1) == 'HTTP/1.1 415 '* ]] || fail "what is no JSON"
answers 404 '/nothing: not found; choose from POST /translate' GET /nothing ''
answers 411 'Content-Length' POST /translate '' 'Transfer-Encoding: chunked'
answers 415 'Content-Encoding' POST /translate '{}' 'Content-Encoding: gzip'
answers 400 'Content-Length is not a single number' POST /translate '{}' 'Content-Length: 1'
answers 400 'Name: value' GET /health '' 'X y: z'
answers 200 '"status":"ok"' GET /health ''
answers 200 "default-src 'none'" GET / ''
grep -qi 'src="\|href="[^d]\|url(\|https*://' answer && fail "the page sends requests to other hosts"
answers 200 'heed_requests_total{path="/translate",code="413"} 4' GET /metrics ''
grep -q 'Access-Control' answer && fail "scripts of other pages may send requests"
grep -q '^heed_sentences_total [1-9]' answer && grep -q '^process_resident_memory_bytes [1-9]' answer || fail "metrics: $(cat answer)"
awk 'sub(/\r$/, "") || 1; /^$/ { body = 1 } body && !/^#/ && NF && NF != 2 { exit 1 }' answer >/dev/null || fail "metrics are not in Prometheus format"
[[ $(raw 'GARBAGE\r\n\r\n' | head -n 1) == 'HTTP/1.1 400 '* ]] || fail "invalid HTTP"
[[ $(raw 'GET /health HTTP/1.1\r\n\r\nGET /health HTTP/1.0\r\n\r\n' | grep -c '"status":"ok"') == 2 ]] || fail "two requests at once"
[[ $(raw 'HEAD / HTTP/1.0\r\n\r\n' | tail -n 1) == $'\r' ]] || fail "HEAD has a body"

# The same bytes as translate run: 32 clients, batches of any size, words and subwords.
"$client" "$port" ask 32 '' 3 <valid.a >online 2>messages || fail "32 clients: $(cat messages)"
cmp online offline || fail "32 clients get different translations"
stop INT
grep -q ' "POST /translate" 200 ' log || fail "a request is not logged: $(cat log)"
grep -q 'translate: translated [0-9]* sentences in ' log || fail "the log has no summary"
for batch in 1 5 64; do
    "$translate" run --model pieces.safetensors --input some.a --n-best 3 --max-length 10 --batch $batch --threads $((batch == 5 ? 3 : 1)) 2>log >best.$batch ||
        fail "translating with --batch $batch"
    cmp best.1 best.$batch || fail "a batch of $batch gives different numbers"
done

# The limits of the work and the time per request, and the contents of the page.
start --max-work 20 --max-answer 30 --title 'one & two' --from en --to de --example '<one>' --example two --allow-host '*' --quiet
translates 200 '"text":' '{"text": "one two", "beam": 10}'
translates 413 '2 tokens and a beam of 11 make 22; at most 20' '{"text": "one two", "beam": 11}'
translates 413 'about 44 words and weights; at most 30' '{"text": "one two", "beam": 3, "alternatives": 3, "alignment": true}'
answers 200 '<h1 dir="auto">one &amp; two</h1>' GET / ''
answers 200 '>&lt;one&gt;</button>' GET / ''
answers 200 'data-from="en" data-to="de"' GET / ''
[[ $(raw 'GET /health HTTP/1.0\r\nHost: example.com\r\n\r\n' | head -n 1) == 'HTTP/1.1 200 '* ]] || fail "--allow-host '*'"
stop
misused '--to' serve --model model.safetensors --from en --port 0
misused '--from' serve --model model.safetensors --to de --port 0

# Models without attention return no weights; other origins may send requests if allowed.
model=none.safetensors
start --allow-origin http://example.com --quiet
translates 400 'no attention' '{"text": "one", "alignment": true}'
translates 200 'Access-Control-Allow-Origin: http://example.com' '{"text": "one"}'
answers 204 'Access-Control-Allow-Methods: POST' OPTIONS /translate ''
stop
grep -q POST log && fail "--quiet prints messages"
model=model.safetensors

# Limits: a full queue, a timeout. One line takes long here: its beam is wide and never ends early. A sanitizer makes it slow.
wide=64 wider=1000 medium=32 warm=2000 attacks=10000
if sanitized; then wide=8 wider=30 medium=4 warm=360 attacks=1800; fi
start --queue 100 --quiet --timeout 0.001 --max-beam 1024 --max-work 10000000
translates 504 'not translated within 0.001 s' "{\"text\": [$(for i in {1..60}; do printf '"%s",' "$long $i"; done)\"\"], \"beam\": $wider}"
stop
start --queue 1 --batch 1 --quiet
for ((i = 0; i < 20; ++i)); do
    ask POST /translate "{\"text\": \"$long $long $long\", \"beam\": $wide}" >full.$i &
done
wait $(jobs -p | grep -v "^$service\$") || true
grep -l 'HTTP/1.1 429 ' full.* >/dev/null || fail "a queue of 1 took 20: $(head -qn 1 full.*)"
grep -h -A 9 'HTTP/1.1 429 ' full.* | grep -q 'Retry-After: [0-9]' || fail "no Retry-After"
grep -l 'HTTP/1.1 200 ' full.* >/dev/null || fail "no request was answered"
stop

# Shutdown while 32 requests are in progress: all are answered.
start --queue 100 --batch 4 --quiet
for ((i = 0; i < 32; ++i)); do
    ask POST /translate "{\"text\": \"$long $long\", \"beam\": $medium}" >end.$i &
done
for ((i = 0; i < 200; ++i)); do
    answers 200 '"status"' GET /health ''
    (($(grep -o '"w[a-z]*ing":[0-9]*' answer | cut -d : -f 2 | paste -sd+ | bc 2>/dev/null || echo 32) < 20)) || break
done
stop
wait || true
for ((i = 0; i < 32; ++i)); do
    grep -q '^HTTP/1.1 200 ' end.$i || fail "request $i of 32 at shutdown: $(cat end.$i)"
done

# The connection of a load balancer learns that the service is stopping. It sends its request while the process is
# suspended.
start --quiet
exec {probe}<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /health HTTP/1.1\r\n\r\n' >question
cat question >&$probe
while read -r -u $probe line && [[ $line != $'\r' ]]; do :; done
read -r -u $probe line
[[ $line == '{"status":"ok",'* ]] || fail "its health is $line"
kill -STOP $service
for ((i = 0; i < 600; ++i)); do
    ! grep -q '^State:[[:space:]]*T' /proc/$service/status || break
    sleep 0.05
done
kill -TERM $service
cat question >&$probe  # in one write
kill -CONT $service
cat <&$probe >answer
exec {probe}>&-
[[ $(head -n 1 answer) == 'HTTP/1.1 503 '* ]] && grep -q '^{"status":"stopping",' answer || fail "while the service stops: $(cat answer)"
status=0
wait $service || status=$?
((status == 0)) || fail "exit code $status"

# Bad requests concurrent with good ones, and clients that hold connections; memory use returns to its previous level.
start --quiet --connections 100 --queue 200 --max-beam 16 --max-length 20
"$client" "$port" bombard $warm 'one two' 4 2>messages || fail "$(cat messages)"
resident() { awk '/^VmRSS/ { print $2 }' /proc/$service/status; }
before=$(resident)
"$client" "$port" hold 300 1 2>/dev/null &
"$client" "$port" bombard $attacks 'one two' 8 2>messages || fail "$(cat messages)"
tail -n 1 messages
wait $! || true
sleep 0.3
after=$(resident)
answers 200 '"waiting":0,"working":0' GET /health ''
answers 200 'heed_connections 1' GET /metrics ''
grep -q '^heed_connections_displaced_total [1-9]' answer || fail "no connection was displaced: $(grep connections answer)"
echo "memory: $before kB, after $attacks bad requests $after kB"
# With a sanitizer, freed memory is kept for some time.
sanitized || ((after < before + 8192)) || fail "memory: $before kB became $after kB"
stop
no_temporaries
