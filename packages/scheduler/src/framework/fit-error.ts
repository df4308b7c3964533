/** The text that says why a pod has no node, as kubectl describe shows it. */

/**
 * Counts of reasons over the nodes. A node that gives several reasons counts in each; lines are
 * sorted as text, so that 10 comes before 2.
 */
export function reasonText(reasons: ReadonlyMap<string, number>): string {
  return [...reasons]
    .map(([reason, count]) => `${count} ${reason}`)
    .toSorted((left, right) => (left < right ? -1 : left > right ? 1 : 0))
    .join(', ');
}

/** `0/5 nodes are available: 3 Insufficient cpu, 2 Too many pods.` and what PostFilter added. */
export function fitErrorText(
  nodeCount: number,
  reasons: ReadonlyMap<string, number>,
  postFilterText = '',
): string {
  const list = reasonText(reasons);
  return `0/${nodeCount} nodes are available:${sentence(list)}${addition(postFilterText)}`;
}

/** The same where a plugin gave up before nodes were looked at. */
export function preFilterErrorText(
  nodeCount: number,
  message: string,
  postFilterText = '',
): string {
  return `0/${nodeCount} nodes are available:${sentence(message)}${addition(postFilterText)}`;
}

function sentence(text: string): string {
  return text === '' ? '' : ` ${text}.`;
}

function addition(text: string): string {
  return text === '' ? '' : ` ${text}`;
}
