/**
 * What a simulated cluster of a size needs in memory, and whether this machine has it.
 *
 * The figures are what all processes together hold per object, measured by `bench/up.ts`, rounded
 * up: the point is to refuse in a second what would end in swap or the kernel's killer.
 */
import { PODS_OF_NODE } from '@megaplane/nodes/node-object';

const BASE_BYTES = 700 * 2 ** 20;
const NODE_BYTES = 9 * 2 ** 10;
const POD_BYTES = 8 * 2 ** 10;

/** Bytes that a cluster of so many nodes (each with its lease) and pods needs in all processes. */
export function clusterBytes(nodes: number, pods: number): number {
  return BASE_BYTES + nodes * NODE_BYTES + pods * POD_BYTES;
}

/** Why a cluster of this size cannot be started on a machine with `memoryBytes`, if so. */
export function refusal(nodes: number, pods: number, memoryBytes: number): string | undefined {
  const neededBytes = clusterBytes(nodes, pods);
  if (neededBytes <= memoryBytes) return undefined;
  const what = pods > 0 ? `${nodes} nodes and ${pods} pods` : `${nodes} nodes`;
  const fitting = Math.floor((memoryBytes - BASE_BYTES - pods * POD_BYTES) / NODE_BYTES);
  const advice =
    fitting > 0
      ? `--nodes ${Math.floor(fitting / 1000) * 1000} would fit`
      : 'take fewer nodes and pods';
  const needed = `${what} would take about ${gib(neededBytes)}`;
  return `${needed}; this machine has ${gib(memoryBytes)}: ${advice}`;
}

/** Why not all of so many pods find a place on so many nodes, if so. */
export function crowd(pods: number, nodes: number): string | undefined {
  const places = nodes * PODS_OF_NODE;
  if (pods <= places) return undefined;
  return (
    `${pods} pods do not fit on ${nodes} nodes, which take ${PODS_OF_NODE} each: ` +
    `${pods - places} would stay Pending; take --nodes ${Math.ceil(pods / PODS_OF_NODE)} or more`
  );
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}
