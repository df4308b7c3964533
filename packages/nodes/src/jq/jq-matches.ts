/** Regular expressions of jq: those of RE2, as gojq has Go's. */
import { ownMember } from '@megaplane/base/members';
import { RE2JS } from 're2js';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { JqError } from './jq-lexer.ts';
import { shown } from './jq-values.ts';

/** Compiled patterns that are kept; an expression uses a handful. */
const PATTERNS_MAX = 256;
const patterns: Map<string, RE2JS> = new Map();

const FLAGS: Readonly<Record<string, string>> = {
  i: 'i',
  s: 's',
  x: '',
  n: '',
  p: 's',
  l: '',
  g: '',
};

function patternOf(source: JsonValue, flags: string): RE2JS {
  if (typeof source !== 'string') {
    throw new JqError(`match cannot be applied with: ${shown(source)}`);
  }
  const kept = Array.from(flags, (flag) => ownMember(FLAGS, flag));
  if (kept.includes(undefined)) throw new JqError(`unsupported regular expression flag: ${flags}`);
  const marks = kept.join('');
  const key = marks === '' ? source : `(?${marks})${source}`;
  let found = patterns.get(key);
  if (found === undefined) {
    try {
      found = RE2JS.compile(key);
    } catch (error) {
      throw new JqError(`invalid regular expression ${source}: ${(error as Error).message}`);
    }
    if (patterns.size >= PATTERNS_MAX) patterns.clear();
    patterns.set(key, found);
  }
  return found;
}

function flagsOf(flags: JsonValue): string {
  if (flags === null) return '';
  if (typeof flags === 'string') return flags;
  throw new JqError(`flags must be a string, not ${shown(flags)}`);
}

function textOf(input: JsonValue): string {
  if (typeof input === 'string') return input;
  throw new JqError(`match cannot be applied to: ${shown(input)}`);
}

export function isMatch(input: JsonValue, source: JsonValue, flags: JsonValue): boolean {
  const text = textOf(input);
  return patternOf(source, flagsOf(flags)).matcher(text).find();
}

/** The matches as `match` tells of them; places are counted in characters. */
export function matchesOf(input: JsonValue, source: JsonValue, flags: JsonValue): JsonObject[] {
  const text = textOf(input);
  const marks = flagsOf(flags);
  const pattern = patternOf(source, marks);
  const names = new Map(Object.entries(pattern.namedGroups()).map(([name, at]) => [at, name]));
  const matcher = pattern.matcher(text);
  const place = (at: number): number => Array.from(text.slice(0, at)).length;
  const found: JsonObject[] = [];
  while (matcher.find()) {
    const captures = Array.from({ length: matcher.groupCount() }, (_, index): JsonObject => {
      const string = matcher.group(index + 1) ?? null;
      const name = names.get(index + 1) ?? null;
      const offset = string === null ? -1 : place(matcher.start(index + 1));
      return { name, offset, length: string === null ? 0 : Array.from(string).length, string };
    });
    const string = matcher.group() ?? '';
    const length = Array.from(string).length;
    found.push({ offset: place(matcher.start()), length, string, captures });
    if (!marks.includes('g')) break;
  }
  return found;
}
