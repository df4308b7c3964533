/** Sets of completion indexes as Jobs write them: `0,2-4,7`. */
import { assert } from '@megaplane/base/assert';

export function parseIndexes(text: string, end: number): Set<number> {
  const indexes: Set<number> = new Set();
  for (const part of text === '' ? [] : text.split(',')) {
    const [first = '', last = first] = part.split('-');
    for (let index = Number(first); index <= Math.min(Number(last), end - 1); index++) {
      indexes.add(index);
    }
  }
  return indexes;
}

export function formatIndexes(indexes: ReadonlySet<number>): string {
  const parts: string[] = [];
  let first = -1;
  let last = -1;
  const close = (): void => {
    if (first < 0) return;
    // Two neighbours are written one by one, three and more as a range.
    if (last === first) parts.push(String(first));
    else parts.push(last === first + 1 ? `${first},${last}` : `${first}-${last}`);
  };
  for (const index of [...indexes].toSorted((a, b) => a - b)) {
    assert(Number.isInteger(index) && index >= 0, 'an index counts from 0');
    if (index !== last + 1 || first < 0) {
      close();
      first = index;
    }
    last = index;
  }
  close();
  return parts.join(',');
}
