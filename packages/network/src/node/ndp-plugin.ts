/**
 * The CNI plugin `megaplane-ndp` (CNI 1.1.0), as the text of a program for a POSIX shell.
 *
 * A pod's address lies in the prefix of its node, and on a shared segment nobody answers for it:
 * ADD enters it into the kernel's neighbour proxy of the uplink, DEL takes it out again. A runtime
 * starts the plugin for each pod, so it is no program of our runtime, which takes a tenth of a
 * second and 50 MiB to start: a shell, one awk and one `ip` take 5 ms and 3 MiB.
 *
 * What it has entered is kept as one file for each attachment below its state directory, so that a
 * DEL without a result of before finds it, GC can compare, and all can be entered again after a
 * restart.
 */

/** Where runtimes look for it, and its `type` in a list of plugins. */
export const NDP_PLUGIN = 'megaplane-ndp';

/** Bytes of configuration that it reads; more is no configuration. */
const INPUT_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Reads JSON from its input in one pass and prints, a line each: V version, U uplink, S state
 * directory, A address of the result of before, R that result, G attachment that is valid. Nothing
 * is printed of what is no JSON; it ends with code 3 then.
 */
const READER = String.raw`
BEGIN { RS = "\""; depth = 0; top = 0; total = 0 }
function bad() { failed = 1; exit 3 }
function pathOf(  at, text) {
  text = ""
  for (at = 1; at <= depth; at++) text = text "/" key[at]
  return text
}
function onText(text,  path) {
  if (kind[depth] == "{" && !hasColon[depth]) { waiting[depth] = text; return }
  path = pathOf()
  if (path == "/cniVersion") print "V " text
  else if (path == "/uplink") print "U " text
  else if (path == "/stateDir") print "S " text
  else if (path == "/prevResult/ips/#/address") print "A " text
  else if (path == "/cni.dev/valid-attachments/#/containerID") id = text
  else if (path == "/cni.dev/valid-attachments/#/ifname") nic = text
}
function onMark(mark) {
  if (mark == "{" || mark == "[") {
    if (depth == 0 && (top || mark == "[")) bad()
    top = 1
    if (depth == 1 && key[1] == "prevResult" && mark == "{") { raw = ""; isRaw = 1 }
    depth++
    kind[depth] = mark; hasColon[depth] = 0
    key[depth] = (mark == "[") ? "#" : ""
  } else if (mark == "}" || mark == "]") {
    if (depth == 0 || kind[depth] != ((mark == "}") ? "{" : "[")) bad()
    depth--
    if (isRaw && depth == 1) { isRaw = 0; print "R " raw mark; isKept = 1 }
    if (pathOf() == "/cni.dev/valid-attachments/#" && mark == "}") {
      print "G " id " " nic
      id = ""; nic = ""
    }
  } else if (mark == ":") {
    if (kind[depth] != "{" || hasColon[depth]) bad()
    key[depth] = waiting[depth]; hasColon[depth] = 1
  } else if (mark == ",") {
    if (depth == 0) bad()
    if (kind[depth] == "{") { hasColon[depth] = 0; key[depth] = "" }
  } else if (mark !~ /[-+.0-9a-zE \t\r\n]/ || (depth == 0 && mark !~ /[ \t\r\n]/)) bad()
}
{
  total += length($0) + 1
  if (total > LIMIT) bad()
  if (isText) {
    text = isPart ? text "\"" $0 : $0
    match($0, /\\*$/)
    isPart = RLENGTH % 2
    if (isPart) next
    if (isRaw) raw = raw "\"" text "\""
    onText(text)
    isText = 0
    next
  }
  count = length($0)
  for (at = 1; at <= count; at++) {
    mark = substr($0, at, 1)
    onMark(mark)
    if (isRaw && mark != "\n" && mark != "\r" && mark != "\t") raw = raw mark
  }
  isText = 1; isPart = 0
}
END { if (failed || depth != 0 || !top || isPart) exit 3 }
`;

const MAIN = String.raw`
ver=1.0.0
fail() { # code, text without quotes and backslashes
  printf '{"cniVersion":"%s","code":%d,"msg":"megaplane-ndp: %s"}\n' "$ver" "$1" "$2"
  exit 1
}
case $CNI_COMMAND in
VERSION)
  printf '{"cniVersion":"1.1.0","supportedVersions":%s}\n' \
    '["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]'
  exit 0
  ;;
ADD | DEL | CHECK | GC | STATUS) ;;
*) fail 4 "CNI_COMMAND is none of ADD, DEL, CHECK, GC, STATUS, VERSION" ;;
esac
read_config=$(awk -v LIMIT=@LIMIT@ "$READER") ||
  fail 6 "the configuration on the input is no JSON object"
uplink= state= raw= valid= addresses=
while IFS=' ' read -r what rest; do
  case $what in
  V) ver=$rest ;;
  U) uplink=$rest ;;
  S) state=$rest ;;
  A) addresses="$addresses $rest" ;;
  R) raw=$rest ;;
  G) valid="$valid
$rest" ;;
  esac
done <<END
$read_config
END
case $ver in
0.3.0 | 0.3.1 | 0.4.0 | 1.0.0 | 1.1.0) ;;
*) ver=1.0.0; fail 1 "this version of CNI is not known; 0.3.0 to 1.1.0 are" ;;
esac
case $uplink in '' | *[!A-Za-z0-9._-]*) fail 7 "uplink names no interface" ;; esac
case $state in /*) ;; *) fail 7 "stateDir is no absolute path" ;; esac
case $state in *[!A-Za-z0-9._/-]*) fail 7 "stateDir has characters that are not taken" ;; esac
is_name() { case $1 in '' | .* | *[!A-Za-z0-9._-]*) return 1 ;; esac; }
names() {
  is_name "$CNI_CONTAINERID" || fail 4 "CNI_CONTAINERID is missing or has wrong characters"
  is_name "$CNI_IFNAME" || fail 4 "CNI_IFNAME is missing or has wrong characters"
  file=$state/$CNI_CONTAINERID.$CNI_IFNAME
}
sixes() { # addresses of IPv6 among the arguments, without the length
  found=
  for one in "$@"; do
    one=${'$'}{one%%/*}
    case $one in
    *[!0-9a-fA-F:.]*) fail 7 "prevResult has an address that is none" ;;
    *:*) found="$found $one" ;;
    esac
  done
}
leave() { # takes out the entries of a file, and the file
  IFS=' ' read -r line <"$1" || [ -n "$line" ] || line=
  set -- "$1" $line
  file=$1 nic=$2
  shift 2 2>/dev/null || shift $#
  for one in "$@"; do ip -6 neigh del proxy "$one" dev "$nic" 2>/dev/null || :; done
  rm -f "$file"
}
case $CNI_COMMAND in
ADD)
  names
  [ -n "$raw" ] || fail 7 "prevResult is missing: a plugin before this one gives addresses"
  sixes $addresses
  if [ -n "$found" ]; then
    [ -d "$state" ] || mkdir -p "$state" 2>/dev/null ||
      fail 5 "the state directory cannot be made"
    printf '%s%s\n' "$uplink" "$found" 2>/dev/null >"$file" ||
      fail 5 "the state directory cannot be written"
    for one in $found; do
      ip -6 neigh replace proxy "$one" dev "$uplink" 2>/dev/null && continue
      leave "$file"
      fail 11 "the kernel does not take an entry on $uplink: is the interface there, with IPv6"
    done
  fi
  printf '%s\n' "$raw"
  ;;
DEL)
  names
  if [ -f "$file" ]; then leave "$file"
  else
    sixes $addresses
    for one in $found; do ip -6 neigh del proxy "$one" dev "$uplink" 2>/dev/null || :; done
  fi
  ;;
CHECK)
  names
  [ -n "$raw" ] || fail 7 "prevResult is missing"
  sixes $addresses
  for one in $found; do
    ip -6 neigh get proxy "$one" dev "$uplink" >/dev/null 2>&1 ||
      fail 101 "$one is not in the neighbour proxy of $uplink"
  done
  ;;
STATUS)
  [ -d "/sys/class/net/$uplink" ] || fail 50 "there is no interface $uplink"
  isOn=0
  setting=/proc/sys/net/ipv6/conf/$uplink/proxy_ndp
  [ ! -r "$setting" ] || read -r isOn <"$setting" || :
  [ "$isOn" = 1 ] ||
    fail 50 "the neighbour proxy of $uplink is off: run megaplane network node again"
  ;;
GC)
  [ -d "$state" ] || exit 0
  { printf '%s\n' "$valid"; echo //; ls -A "$state"; } | awk '
    $0 == "//" { isList = 1; next }
    !isList { if (NF == 2) kept[$1 "." $2] = 1; next }
    !($0 in kept) && $0 !~ /^\./ { print }' |
    while IFS= read -r one; do
      if [ -f "$state/$one" ]; then leave "$state/$one"; fi
    done
  ;;
esac
`;

/** The text of the program; it needs `sh`, `awk` and `ip`, which every Linux of a node has. */
export function ndpPlugin(): string {
  const reader = `READER='${READER}'\n`;
  const head =
    '#!/bin/sh\n# Written by `megaplane network node`: a CNI plugin, see docs/network.md.\n';
  const main = MAIN.replace('@LIMIT@', `${INPUT_BYTES_MAX}`);
  return `${head}LC_ALL=C\nexport LC_ALL\n${reader}${main}`;
}
