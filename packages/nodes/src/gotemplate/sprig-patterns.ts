/** The functions of the sprig library on patterns, paths, versions and URLs. */
import { posix } from 'node:path';
import type { GoValue } from './go-values.ts';
import { patternOf, searches, type Matcher } from './pattern-search.ts';
import { intOf, textOf } from './sprig-functions.ts';
import type { TemplateFunctions } from './template-run.ts';

const pattern = (of: GoValue): ReturnType<typeof patternOf> => patternOf(textOf(of));

/** Go's own templates: `$1`, `${name}`, and `$$` for one dollar. */
function expanded(by: string, matcher: Matcher): string {
  return by.replaceAll(/\$(?:\$|\{(\w+)\}|(\w+))/g, (whole, braced?: string, bare?: string) => {
    const name = braced ?? bare;
    if (name === undefined) return whole === '$$' ? '$' : whole;
    const isNumber = /^\d+$/.test(name);
    if (isNumber && Number(name) > matcher.groupCount()) return '';
    try {
      return matcher.group(isNumber ? Number(name) : name) ?? '';
    } catch {
      // a name that the pattern does not have stands for nothing
      return '';
    }
  });
}

function replaced(of: GoValue, value: GoValue, by: (matcher: Matcher) => string): string {
  const text = textOf(value);
  let made = '';
  let end = 0;
  for (const matcher of searches(pattern(of), text)) {
    made += text.slice(end, matcher.start()) + by(matcher);
    end = matcher.end();
  }
  return made + text.slice(end);
}

function found(of: GoValue, value: GoValue, count: GoValue): string[] {
  const most = Number(intOf(count));
  const all: string[] = [];
  if (most === 0) return all;
  for (const matcher of searches(pattern(of), textOf(value))) {
    all.push(matcher.group() ?? '');
    if (all.length === most) break;
  }
  return all;
}

function divided(of: GoValue, value: GoValue, count: GoValue): string[] {
  const text = textOf(value);
  const most = Number(intOf(count));
  if (most === 0) return [];
  const parts: string[] = [];
  let end = 0;
  if (most === 1) return [text];
  for (const matcher of searches(pattern(of), text)) {
    if (matcher.end() === 0 || matcher.start() === text.length) continue;
    parts.push(text.slice(end, matcher.start()));
    end = matcher.end();
    if (parts.length === most - 1) break;
  }
  return [...parts, text.slice(end)];
}

const mustMatch = (of: GoValue, value: GoValue): boolean =>
  searches(pattern(of), textOf(value)).next().done === false;
/** A pattern that is none matches nothing. */
const match = (of: GoValue, value: GoValue): boolean => isPattern(of) && mustMatch(of, value);

function isPattern(of: GoValue): boolean {
  try {
    pattern(of);
    return true;
  } catch {
    // what is wrong with it is of no interest to `regexMatch`
    return false;
  }
}

const find = (of: GoValue, value: GoValue): string => found(of, value, 1n)[0] ?? '';
const replaceAll = (of: GoValue, value: GoValue, by: GoValue): string =>
  replaced(of, value, (matcher) => expanded(textOf(by), matcher));
const replaceLiteral = (of: GoValue, value: GoValue, by: GoValue): string =>
  replaced(of, value, () => textOf(by));
const clean = (path: GoValue): string => posix.normalize(textOf(path)).replace(/(.)\/$/, '$1');
const base = (path: GoValue): string =>
  textOf(path) === '' ? '.' : posix.basename(textOf(path)) || '/';
const dir = (path: GoValue): string => clean(textOf(path).replace(/[^/]*$/, ''));
const ext = (path: GoValue): string => /\.[^./]*$/.exec(textOf(path))?.[0] ?? '';
const isAbs = (path: GoValue): boolean => textOf(path).startsWith('/');

export const SPRIG_PATTERNS: TemplateFunctions = {
  regexMatch: match,
  mustRegexMatch: mustMatch,
  regexFind: find,
  mustRegexFind: find,
  regexFindAll: found,
  mustRegexFindAll: found,
  regexReplaceAll: replaceAll,
  mustRegexReplaceAll: replaceAll,
  regexReplaceAllLiteral: replaceLiteral,
  mustRegexReplaceAllLiteral: replaceLiteral,
  regexSplit: divided,
  mustRegexSplit: divided,
  regexQuoteMeta: (value) => textOf(value).replaceAll(/[\\.+*?()|[\]{}^$]/g, '\\$&'),
  base,
  osBase: base,
  dir,
  osDir: dir,
  clean,
  osClean: clean,
  ext,
  osExt: ext,
  isAbs,
  osIsAbs: isAbs,
  semverCompare: (range, version) => isWithin(textOf(range), textOf(version)),
};

interface Version {
  readonly numbers: readonly number[];
  readonly release: string;
}

const VERSION = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/;

function versionOf(text: string): Version {
  const parts = VERSION.exec(text);
  if (parts === null) throw new Error(`Invalid Semantic Version: ${text}`);
  const numbers = [parts[1], parts[2], parts[3]].map((part) => Number(part ?? 0));
  return { numbers, release: parts[4] ?? '' };
}

/** Negative, zero or positive; a version before its release is the smaller one. */
function compared(left: Version, right: Version): number {
  for (const [at, number] of left.numbers.entries()) {
    const difference = number - (right.numbers[at] ?? 0);
    if (difference !== 0) return difference;
  }
  if (left.release === right.release) return 0;
  if (left.release === '') return 1;
  return right.release === '' ? -1 : comparedReleases(left.release, right.release);
}

function comparedReleases(left: string, right: string): number {
  const lefts = left.split('.');
  const rights = right.split('.');
  for (let at = 0; at < Math.max(lefts.length, rights.length); at++) {
    const [a, b] = [lefts[at], rights[at]];
    if (a === undefined) return -1;
    if (b === undefined) return 1;
    const isNumeric = [/^\d+$/.test(a), /^\d+$/.test(b)];
    if (isNumeric[0] !== isNumeric[1]) return isNumeric[0] === true ? -1 : 1;
    const difference = isNumeric[0] === true ? Number(a) - Number(b) : a < b ? -1 : a > b ? 1 : 0;
    if (difference !== 0) return difference;
  }
  return 0;
}

const TERM = /^(=|!=|>=|=>|<=|=<|>|<|~|\^)?\s*(v?[0-9xX*][0-9A-Za-z.*+-]*)$/;

/** Ranges as Masterminds/semver has them: `>=1.2, <2 || ~3.1`. */
function isWithin(range: string, version: string): boolean {
  const own = versionOf(version);
  return range.split('||').some((part) => {
    const terms = part
      .trim()
      .replaceAll(/([=<>~^!])\s+/g, '$1')
      .split(/[\s,]+/);
    return terms.every((term) => isMet(term, own));
  });
}

function isMet(term: string, own: Version): boolean {
  const [, operator = '', text = ''] = TERM.exec(term) ?? [];
  if (text === '') throw new Error(`improper constraint: ${term}`);
  const known = text.replace(/^v/, '').split('-')[0]?.split('.') ?? [];
  const wild = known.findIndex((part) => /^[xX*]$/.test(part));
  const places = wild < 0 ? Math.min(3, known.length) : wild;
  const least = versionOf(text.replaceAll(/[xX*]/g, '0'));
  // versions before a release are meant only where the range names one
  if (own.release !== '' && least.release === '') return false;
  const order = compared(own, least);
  const isSame = (count: number): boolean =>
    least.numbers.slice(0, count).every((number, at) => own.numbers[at] === number);
  switch (operator) {
    case '>':
      return places === 3 ? order > 0 : order > 0 && !isSame(places);
    case '<':
      return order < 0;
    case '>=':
    case '=>':
      return order >= 0;
    case '<=':
    case '=<':
      return order <= 0 || (places < 3 && isSame(places));
    case '!=':
      return places === 3 ? order !== 0 : !isSame(places);
    case '~':
      return order >= 0 && isSame(Math.min(2, places));
    case '^': {
      const first = least.numbers.findIndex((number) => number > 0);
      const count = first < 0 ? places : Math.min(first + 1, places);
      return order >= 0 && isSame(count);
    }
    default:
      return places === 3 ? order === 0 : isSame(places);
  }
}
