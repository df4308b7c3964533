const ID_START = 'simulated://';
/** Of FNV-1a, with 32 bits; the second lane begins elsewhere. */
const HASH_PRIME = 0x01000193;
const HASH_STARTS = [0x811c9dc5, 0x5bd1e995] as const;

/**
 * By which runtimes, and tools that follow logs, tell containers apart: told by the pod's uid and
 * the container's name, so that nobody has to keep it. It has 16 digits where containerd's has 64,
 * since a million pods hold a million of them.
 */
export function containerId(uid: string, name: string): string {
  let [one, other]: [number, number] = [...HASH_STARTS];
  for (const part of [uid, name]) {
    for (let at = 0; at < part.length; at++) {
      const unit = part.charCodeAt(at);
      one = Math.imul(one ^ unit, HASH_PRIME);
      other = Math.imul(other ^ unit ^ (one >>> 15), HASH_PRIME);
    }
    one = Math.imul(one ^ 0x2f, HASH_PRIME);
  }
  return `${ID_START}${hexOf(one)}${hexOf(other)}`;
}

function hexOf(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0');
}
