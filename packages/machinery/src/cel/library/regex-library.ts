/**
 * Regular expressions in RE2's language and in linear time. What RE2 refuses is refused, and no
 * pattern can be made to explode.
 */
import { RE2JS } from 're2js';
import type { Library } from '../values/functions.ts';
import { PLAIN_CHARS_MAX, plainPattern } from '../values/plain-pattern.ts';
import { ArrayList, CelError, type CelValue } from '../values/values.ts';

/** Patterns that stay compiled; the oldest goes first. */
const PATTERNS_MAX = 500;
/** Letters that all searches of one `findAll` may look at. */
const SEARCHED_LETTERS_MAX: number = 2 * 1024 * 1024;
/** Longer patterns are refused before they become a program of many megabytes. */
const PATTERN_CHARS_MAX = 32 * 1024;

/**
 * Steps that the patterns of one object, or of one expression alone, may take: letters of texts
 * times states of the pattern. Some 300 ms where each step has to be taken.
 */
export const PATTERN_STEPS_MAX: number = 64 * 1024 * 1024;

interface Compiled {
  readonly ok: true;
  readonly value: RE2JS;
  /** Of its program: how many places of it a letter may be compared with. */
  readonly states: number;
  /** The same for short texts, where the pattern is plain. */
  readonly plain: RegExp | null;
}

const known = new Map<string, Compiled>();

export type Pattern = Compiled | { readonly ok: false; readonly message: string };

/** Compiles a pattern as Go's regexp would; the message is Go's. */
export function compilePattern(text: string): Pattern {
  const kept = known.get(text);
  if (kept !== undefined) return kept;
  if (text.length > PATTERN_CHARS_MAX) {
    return { ok: false, message: 'error parsing regexp: expression too large' };
  }
  const value = compiledOf(text);
  if (typeof value === 'string') return { ok: false, message: value };
  const states = Math.max(1, value.programSize());
  const compiled: Compiled = { ok: true, value, states, plain: plainPattern(text) };
  if (known.size >= PATTERNS_MAX) known.delete(known.keys().next().value ?? '');
  known.set(text, compiled);
  return compiled;
}

/** The library's errors where Go has others, or none. */
const TRAILING = 'error parsing regexp: trailing backslash at end of expression';
const DOUBLED = 'error parsing regexp: duplicate capture group name';
/** Names of groups; what is escaped stands by itself. */
const GROUP_NAME = /\\[^]|\(\?P?<\w+>/g;

/** The program, or why there is none. */
function compiledOf(text: string): RE2JS | string {
  try {
    return RE2JS.compile(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    if (message === TRAILING) return `${TRAILING}: \`\``;
    if (!message.startsWith(DOUBLED)) return message;
    // nobody asks for groups by name, and Go lets several have one
    const nameless = text.replace(GROUP_NAME, (part) => (part.startsWith('(') ? '(' : part));
    const value = nameless === text ? message : compiledOf(nameless);
    return typeof value === 'string' ? message : value;
  }
}

/**
 * Whether a pattern that is known to be RE2's finds something in a text; false, too, where the
 * steps of the work are used up.
 */
export function matchesRe2(text: string, pattern: string): boolean {
  const compiled = compilePattern(pattern);
  return compiled.ok && isMatch(compiled, text) === true;
}

let stepsLeft: number = PATTERN_STEPS_MAX;
let worksWithin = 0;

/** Does work that belongs together: its patterns share their steps. */
export function withPatternSteps<T>(work: () => T): T {
  if (worksWithin++ === 0) stepsLeft = PATTERN_STEPS_MAX;
  try {
    return work();
  } finally {
    worksWithin--;
  }
}

/** False: the work has looked at too much already. */
function spend({ states }: Compiled, letters: number): boolean {
  if (worksWithin === 0) stepsLeft = PATTERN_STEPS_MAX;
  stepsLeft -= states * letters;
  return stepsLeft >= 0;
}

function tooManySteps(): CelError {
  return new CelError(`patterns take more than ${PATTERN_STEPS_MAX} steps`);
}

/** Null: it would take too many steps to know. */
function isMatch(compiled: Compiled, text: string): boolean | null {
  const { value, plain } = compiled;
  if (plain !== null && text.length <= PLAIN_CHARS_MAX) return plain.test(text);
  return spend(compiled, text.length) ? value.test(text) : null;
}

export function matchesPattern(text: string, pattern: string): CelValue {
  const compiled = compilePattern(pattern);
  if (!compiled.ok) return new CelError(compiled.message);
  return isMatch(compiled, text) ?? tooManySteps();
}

function find(text: string, pattern: string): CelValue {
  const compiled = compilePattern(pattern);
  if (!compiled.ok) return new CelError(`Illegal regex: ${compiled.message}`);
  if (!spend(compiled, text.length)) return tooManySteps();
  const matcher = compiled.value.matcher(text);
  return matcher.find() ? (matcher.group() ?? '') : '';
}

function findAll(text: string, pattern: string, limit = -1n): CelValue {
  const compiled = compilePattern(pattern);
  if (!compiled.ok) return new CelError(`Illegal regex: ${compiled.message}`);
  const matcher = compiled.value.matcher(text);
  if (!spend(compiled, text.length)) return tooManySteps();
  const found: CelValue[] = [];
  // each search may look at all that is left, whatever it finds
  const lettersMax = Math.min(SEARCHED_LETTERS_MAX, PATTERN_STEPS_MAX / compiled.states);
  const searchesMax = Math.ceil(lettersMax / Math.max(1, text.length));
  while ((limit < 0n || found.length < limit) && matcher.find()) {
    if (found.length >= searchesMax) return new CelError(`more than ${searchesMax} matches`);
    found.push(matcher.group() ?? '');
  }
  return new ArrayList(found);
}

export const REGEX_LIBRARY: Library = {
  'string_find_string: string . find(string): string': find,
  'string_find_all_string: string . findAll(string): list(string)': findAll,
  'string_find_all_string_int: string . findAll(string, int): list(string)': findAll,
};
