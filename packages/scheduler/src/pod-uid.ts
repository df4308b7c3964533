/** Uids of pods, which the tables keep as four words. */
import type { PodTable } from './pod-table.ts';

function hex(word: number): string {
  return word.toString(16).padStart(8, '0');
}

/** Empty for pods whose uid is not of the usual form. */
export function uidText({ uid0, uid1, uid2, uid3 }: PodTable, id: number): string {
  const [a, b, c, d] = [uid0.get(id), uid1.get(id), uid2.get(id), uid3.get(id)];
  if (a === 0 && b === 0 && c === 0 && d === 0) return '';
  const [second, third] = [hex(b), hex(c)];
  const head = `${hex(a)}-${second.slice(0, 4)}-${second.slice(4)}`;
  return `${head}-${third.slice(0, 4)}-${third.slice(4)}${hex(d)}`;
}
