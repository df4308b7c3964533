/** Functions of jq that are written in jq, as its manual defines them: `(parameters) body`. */
const PRELUDE: Readonly<Record<string, string>> = {
  'map_values/1': '(f) .[] |= f',
  'add/1': '(f) [f] | add',
  'recurse/2': '(f; cond) recurse(f | select(cond))',
  'with_entries/1': '(f) to_entries | map(f) | from_entries',
  'to_entries/0': '() [keys[] as $k | {key: $k, value: .[$k]}]',
  'from_entries/0': `() map({(.key // .Key // .name // .Name):
    (if has("value") then .value else .Value end)}) | add // {}`,
  'walk/1': `(f) def w: if type == "array" then map(w)
    elif type == "object" then map_values(w) else . end | f; w`,
  'nth/2': `($n; g) if $n < 0 then error("nth doesn't support negative index")
    else first(skip($n; g)) end`,
  'paths/0': '() path(..) | select(. != [])',
  'paths/1': '(f) path(.. | select(f)) | select(. != [])',
  'pick/1': '(f) . as $v | reduce path(f) as $p (null; setpath($p; $v | getpath($p)))',
  'in/1': '(xs) . as $x | xs | has($x)',
  'inside/1': '(xs) . as $x | xs | contains($x)',
  'combinations/0': `() if length == 0 then [] else
    .[0][] as $x | [$x] + (.[1:] | combinations) end`,
  'combinations/1': '(n) . as $v | [limit(n; repeat($v))] | combinations',
  'finites/0': '() select(isinfinite or isnan | not)',
  'normals/0': '() select(isnormal)',
  'todate/0': '() strftime("%Y-%m-%dT%H:%M:%SZ")',
  'todateiso8601/0': '() strftime("%Y-%m-%dT%H:%M:%SZ")',
  'match/1': '(re) match(re; null)',
  'test/1': '(re) test(re; null)',
  'capture/1': '(re) capture(re; null)',
  'capture/2': `($re; $flags) match($re; $flags) |
    [.captures[] | select(.name != null) | {(.name): .string}] | add // {}`,
  'scan/1': '(re) scan(re; null)',
  'scan/2': `($re; $flags) match($re; "g" + $flags) |
    if .captures == [] then .string else [.captures[].string] end`,
  'splits/1': '(re) splits(re; null)',
  'splits/2': '(re; flags) split(re; flags)[]',
  'split/2': `($re; $flags) . as $s |
    [foreach (match($re; $flags + "g"), null) as $m ({at: 0, out: null};
      .out = $s[.at:(if $m == null then null else $m.offset end)] |
      if $m == null then . else .at = $m.offset + $m.length end; .out)]`,
  'sub/2': '(re; str) sub(re; str; null)',
  'sub/3': `($re; str; $flags) . as $s |
    def r($ms; $i; $at): if $i == ($ms | length) then $s[$at:] else $ms[$i] as $m |
      ([$m.captures[] | select(.name != null) | {(.name): .string}] | add // {} | str) as $by |
      if $by | type != "string" then error("cannot add: a string is expected") else
      $s[$at:$m.offset] + $by + r($ms; $i + 1; $m.offset + $m.length) end end;
    r([match($re; $flags)]; 0; 0)`,
  'gsub/2': '(re; str) sub(re; str; "g")',
  'gsub/3': '(re; str; $flags) sub(re; str; $flags + "g")',
  'IN/1': '(s) any(s == .; .)',
  'IN/2': '(src; s) any(src == s; .)',
  'INDEX/1': '(f) INDEX(.[]; f)',
  'INDEX/2': '(s; f) reduce s as $row ({}; .[$row | f | tostring] |= $row)',
  'tostream/0': `() path(def r: (.[]? | r), .; r) as $p | getpath($p) |
    reduce path(.[]?) as $q ([$p, .]; [$p + $q])`,
  'fromstream/1': `(f) foreach f as $pv (null; if .e then null else . end | $pv as [$p, $v] |
    if $pv | length == 2 then setpath(["v"] + $p; $v) | setpath(["e"]; $p | length == 0)
    else setpath(["e"]; $p | length == 1) end; if .e then .v else empty end)`,
};

export const JQ_PRELUDE: ReadonlyMap<string, string> = new Map(Object.entries(PRELUDE));
