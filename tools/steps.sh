# shellcheck shell=bash
# Shows the steps of a set-up with the remaining time: one live line on a terminal, otherwise
# plain lines. To be sourced.
#   step_begin NUMBER TOTAL NAME SECONDS AFTER [PROGRESS]  SECONDS: expected duration; AFTER: of all later steps;
#       PROGRESS ELAPSED: a function that prints the finished share in percent and the remaining seconds; nothing if unknown
#   step_end                                               removes the live line, or prints the duration of the step
step_ticker=

# Formats SECONDS for users.
time_left() {
  if [ "$1" -lt 50 ]; then echo "less than a minute left"; else echo "about $((($1 + 30) / 60)) min left"; fi
}

# Text of a step after ELAPSED seconds. If the estimate is exceeded, a tenth of the elapsed time is shown as remaining.
step_text() { # step_text ELAPSED
  local elapsed=$1 percent="" left="" progress=""
  [ -z "$step_progress" ] || progress=$($step_progress "$elapsed") || progress=""
  [ -z "$progress" ] || read -r percent left <<<"$progress"
  if [ -z "$left" ]; then
    left=$((step_seconds - elapsed))
    [ "$left" -ge $((elapsed / 10)) ] || left=$((elapsed / 10))
  fi
  echo "$step_number of $step_total: $step_name${percent:+, $percent %}, $(time_left $((left + step_after)))"
}

step_begin() {
  step_number=$1 step_total=$2 step_name=$3 step_seconds=$4 step_after=$5 step_progress=${6:-} step_began=$SECONDS
  step_show &
  step_ticker=$!
}
# Updates the text of the step every second until it is ended, or every half minute without a terminal. Prints nothing
# for a step that ends immediately.
step_show() {
  local pause=3 sleeper=
  [ ! -t 2 ] || pause=1
  trap - EXIT # removes the caller's trap
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
