/**
 * Searches with RE2 patterns, bounded: whoever writes a stage gives the pattern, whoever writes an
 * object the text, and the simulator stands still meanwhile.
 */
import { RE2JS } from 're2js';

/** Compiled patterns that are kept; a stage uses a handful. */
const PATTERNS_MAX = 256;
/** Longer patterns are refused before they become a program of many megabytes. */
export const PATTERN_CHARS_MAX: number = 16 * 1024;
/** Letters that all searches of one call may look at, times the states of the pattern. */
export const SEARCH_STEPS_MAX: number = 32 * 1024 * 1024;

const patterns: Map<string, RE2JS> = new Map();

/** RE2, as Go has it. Throws an Error where it is none. */
export function patternOf(source: string): RE2JS {
  let found = patterns.get(source);
  if (found !== undefined) return found;
  if (source.length > PATTERN_CHARS_MAX) {
    throw new Error('error parsing regexp: expression too large');
  }
  found = RE2JS.compile(source);
  if (patterns.size >= PATTERNS_MAX) patterns.clear();
  patterns.set(source, found);
  return found;
}

export type Matcher = ReturnType<RE2JS['matcher']>;

/** The matches in a text, one after the other. Throws an Error where they take too many steps. */
export function* searches(pattern: RE2JS, text: string): Generator<Matcher, void> {
  const matcher = pattern.matcher(text);
  // each search may look at all of the text, whatever it finds
  const cost = (text.length + 1) * Math.max(1, pattern.programSize());
  for (let steps = cost; ; steps += cost) {
    if (steps > SEARCH_STEPS_MAX)
      throw new Error(`more than ${SEARCH_STEPS_MAX} steps of a search`);
    if (!matcher.find()) return;
    yield matcher;
  }
}
