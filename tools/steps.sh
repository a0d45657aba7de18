# shellcheck shell=bash
# Steps of a set-up, shown with the time that is left: one live line on a terminal, plain lines elsewhere. For sourcing.
#   step_begin NUMBER TOTAL NAME SECONDS AFTER [PERCENT]   SECONDS: what it should take; AFTER: all later steps together;
#                                                          PERCENT: a function that prints how much of it is done
#   step_end                                               takes the live line away, or says how long the step took
step_ticker=

# Prints how long SECONDS are, in the words of a person.
time_left() {
  if [ "$1" -lt 50 ]; then echo "less than a minute left"; else echo "about $((($1 + 30) / 60)) min left"; fi
}

# The text of a step after ELAPSED seconds. Its own pace counts as soon as a twentieth is done; an estimate that has been
# exceeded leaves a tenth of what has passed.
step_text() { # step_text ELAPSED
  local elapsed=$1 percent="" left=$((step_seconds - $1))
  [ -z "$step_percent" ] || percent=$($step_percent)
  if [ "${percent:-0}" -ge 5 ]; then left=$((elapsed * (100 - percent) / percent)); fi
  [ "$left" -ge $((elapsed / 10)) ] || left=$((elapsed / 10))
  echo "$step_number of $step_total: $step_name${percent:+, $percent %}, $(time_left $((left + step_after)))"
}

step_begin() {
  step_number=$1 step_total=$2 step_name=$3 step_seconds=$4 step_after=$5 step_percent=${6:-} step_began=$SECONDS
  step_show &
  step_ticker=$!
}
# Shows the step anew every second, or every half minute where nothing can be overwritten, until it is ended; nothing of
# a step that is over at once.
step_show() {
  local pause=3 sleeper=
  [ ! -t 2 ] || pause=1
  trap - EXIT # which is the caller's
  trap '[ -z "$sleeper" ] || kill "$sleeper" 2>/dev/null; exit 0' TERM INT
  while true; do
    sleep $pause &
    sleeper=$!
    wait "$sleeper" || true
    if [ -t 2 ]; then printf '\r\033[K%s' "$(step_text $((SECONDS - step_began)))" >&2
    else
      step_text $((SECONDS - step_began)) >&2
      pause=30
    fi
  done
}
step_end() {
  [ -n "$step_ticker" ] || return 0
  kill "$step_ticker" 2>/dev/null || true
  wait "$step_ticker" 2>/dev/null || true
  step_ticker=
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  [ $((SECONDS - step_began)) -lt 5 ] || echo "$step_number of $step_total: $step_name: $((SECONDS - step_began)) s" >&2
}
