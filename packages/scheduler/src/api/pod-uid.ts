/** Uids of pods, which the tables keep as four words. */

const DIGITS: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, '0'),
);

/** Bits 31 to 16 of a word as four digits. */
function upper(word: number): string {
  return `${DIGITS[word >>> 24]}${DIGITS[(word >>> 16) & 0xff]}`;
}

function lower(word: number): string {
  return `${DIGITS[(word >>> 8) & 0xff]}${DIGITS[word & 0xff]}`;
}

/** The columns of a table of pods that hold their uids, 32 bits each. */
export interface UidColumns {
  readonly uid0: WordColumn;
  readonly uid1: WordColumn;
  readonly uid2: WordColumn;
  readonly uid3: WordColumn;
}

interface WordColumn {
  get(id: number): number;
}

/** Empty for pods whose uid is not of the usual form. */
export function uidText({ uid0, uid1, uid2, uid3 }: UidColumns, id: number): string {
  const [a, b, c, d] = [uid0.get(id), uid1.get(id), uid2.get(id), uid3.get(id)];
  if (a === 0 && b === 0 && c === 0 && d === 0) return '';
  const head = `${upper(a)}${lower(a)}-${upper(b)}-${lower(b)}`;
  return `${head}-${upper(c)}-${lower(c)}${upper(d)}${lower(d)}`;
}
