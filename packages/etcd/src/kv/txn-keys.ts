/**
 * The static rule on keys of a transaction: on one path through it a key is put at most once, and
 * not inside a range that the same path deletes. A nested transaction's two branches may touch the
 * same keys, as only one of them runs, but not those of its siblings. Deletes may overlap.
 */
export interface KeySets {
  readonly puts: ReadonlySet<string>;
  /** Ranges as [key, range_end]. */
  readonly deletes: readonly (readonly [string, string])[];
}

function isDeleted(key: string, deletes: readonly (readonly [string, string])[]): boolean {
  return deletes.some(([start, end]) => {
    if (end === '') return key === start;
    // A delete "from the key on" (range_end "\0") is not looked at, as in etcd.
    return key >= start && key < end;
  });
}

/** Keys of a branch with those of its nested transactions; null when two of them collide. */
export function findDuplicate(
  ownPuts: readonly string[],
  ownDeletes: readonly (readonly [string, string])[],
  nested: readonly (readonly [KeySets, KeySets])[],
): KeySets | null {
  const puts = new Set<string>();
  const deletes = [...ownDeletes];
  for (const [then, otherwise] of nested) {
    const both = new Set([...then.puts, ...otherwise.puts]);
    for (const key of both) {
      if (puts.has(key) || isDeleted(key, deletes)) return null;
    }
    for (const key of both) puts.add(key);
    deletes.push(...then.deletes, ...otherwise.deletes);
  }
  for (const key of ownPuts) {
    if (puts.has(key) || isDeleted(key, deletes)) return null;
    puts.add(key);
  }
  return { puts, deletes };
}
