/** Regular expressions of jq: those of RE2, as gojq has Go's. */
import { ownMember } from '@megaplane/base/members';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { patternOf as re2Of, searches } from '../gotemplate/pattern-search.ts';
import { JqError } from './jq-lexer.ts';
import { shown } from './jq-values.ts';

const FLAGS: Readonly<Record<string, string>> = {
  i: 'i',
  s: 's',
  x: '',
  n: '',
  p: 's',
  l: '',
  g: '',
};

function patternOf(source: JsonValue, flags: string): ReturnType<typeof re2Of> {
  if (typeof source !== 'string') {
    throw new JqError(`match cannot be applied with: ${shown(source)}`);
  }
  const kept = Array.from(flags, (flag) => ownMember(FLAGS, flag));
  if (kept.includes(undefined)) throw new JqError(`unsupported regular expression flag: ${flags}`);
  const marks = kept.join('');
  const key = marks === '' ? source : `(?${marks})${source}`;
  try {
    return re2Of(key);
  } catch (error) {
    throw new JqError(`invalid regular expression ${source}: ${(error as Error).message}`);
  }
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
  return !bounded(() => searches(patternOf(source, flagsOf(flags)), text).next().done);
}

/** What takes too many steps is an error of the expression. */
function bounded<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof JqError || error instanceof RangeError) throw error;
    throw new JqError((error as Error).message);
  }
}

/** The matches as `match` tells of them; places are counted in characters. */
export function matchesOf(input: JsonValue, source: JsonValue, flags: JsonValue): JsonObject[] {
  return bounded(() => foundIn(input, source, flags));
}

function foundIn(input: JsonValue, source: JsonValue, flags: JsonValue): JsonObject[] {
  const text = textOf(input);
  const marks = flagsOf(flags);
  const pattern = patternOf(source, marks);
  const names = new Map(Object.entries(pattern.namedGroups()).map(([name, at]) => [at, name]));
  const place = (at: number): number => Array.from(text.slice(0, at)).length;
  const found: JsonObject[] = [];
  for (const matcher of searches(pattern, text)) {
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
