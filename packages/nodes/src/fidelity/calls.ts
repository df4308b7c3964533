/** What a real kubelet says to an API server, call by call, each of which can be left out. */

export const CALLS = [
  'csinode',
  'images',
  'status',
  'status-get',
  'watch-node',
  'watch-pods',
  'watch-services',
  'watch-csidrivers',
  'watch-runtimeclasses',
  'watch-configs',
  'pod-get',
  'pod-creating',
  'pod-final',
  'token',
  'events',
] as const;
export type Call = (typeof CALLS)[number];

/** What kubelets before their cache of the own Node did, and newer ones do no more. */
const OF_OLD: readonly Call[] = ['status-get'];

/**
 * Reads a list such as `watch-pods,token` (these alone) or `-events` (all but these, and those that
 * must be asked for). Throws an Error that names the word that is none.
 */
export function parseCalls(flag: string, text: string): ReadonlySet<Call> {
  const words = text.split(',').filter((word) => word !== '');
  const isWithout = words.every((word) => word.startsWith('-'));
  const named = words.map((word) => {
    const call = CALLS.find((one) => one === word.replace(/^-/, ''));
    if (call === undefined) throw new Error(`${flag}: ${word} is none of ${CALLS.join(', ')}`);
    if (!isWithout && word.startsWith('-')) {
      throw new Error(`${flag}: ${word}: either all words begin with - or none`);
    }
    return call;
  });
  if (!isWithout) return new Set(named);
  return new Set(CALLS.filter((call) => !named.includes(call) && !OF_OLD.includes(call)));
}
