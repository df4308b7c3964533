/** Names of those who own fields. */
import { invalidValue, tooLong, type FieldError } from './fielderrors.ts';

export const MANAGER_BYTES_MAX = 128;
/** What Go does not print: all but letters, marks, numbers, signs and the blank. */
export const UNPRINTABLE: RegExp = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u;

/** What is wrong with such a name at a path. */
export function managerErrors(manager: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (Buffer.byteLength(manager) > MANAGER_BYTES_MAX) errors.push(tooLong(path, MANAGER_BYTES_MAX));
  if (!UNPRINTABLE.test(manager)) return errors;
  let position = 0;
  for (const letter of manager) {
    if (UNPRINTABLE.test(letter)) {
      const code = letter.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0');
      const text = `invalid character U+${code} (at position ${position})`;
      errors.push(invalidValue(path, manager, text));
    }
    position += Buffer.byteLength(letter);
  }
  return errors;
}
