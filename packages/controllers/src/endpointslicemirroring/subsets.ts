/**
 * The subsets of an Endpoints object in their canonical form, as upstream's RepackSubsets has it:
 * each address once for a port, ports with the same addresses together, addresses in order. An
 * address that some subset calls not ready is not ready for that port.
 */
import type { JsonValue } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';

export interface Subset {
  readonly ports: readonly JsonValue[];
  /** Those that are ready come first, each part by its address. */
  readonly addresses: readonly SubsetAddress[];
}

export interface SubsetAddress {
  readonly address: JsonValue;
  readonly isReady: boolean;
}

interface Served {
  /** None for subsets that name no ports. */
  readonly ports: readonly JsonValue[];
  readonly addresses: Map<string, SubsetAddress>;
}

export function repack(subsets: readonly JsonValue[]): Subset[] {
  const byPort = new Map<string, Served>();
  for (const subset of subsets) {
    const ports = listAt(subset, 'ports');
    for (const port of ports.length === 0 ? [undefined] : ports) {
      const key = JSON.stringify(port) ?? '';
      const served = byPort.get(key) ?? {
        ports: port === undefined ? [] : [port],
        addresses: new Map(),
      };
      byPort.set(key, served);
      addAll(served.addresses, listAt(subset, 'addresses'), true);
      addAll(served.addresses, listAt(subset, 'notReadyAddresses'), false);
    }
  }
  const together = Map.groupBy(byPort.values(), ({ addresses }) =>
    JSON.stringify([...addresses].map(([key, { isReady }]) => `${key} ${isReady}`).toSorted()),
  );
  return [...together.values()].map((all) => ({
    ports: all.flatMap(({ ports }) => ports),
    addresses: inOrder(all[0]?.addresses ?? new Map()),
  }));
}

function addAll(
  into: Map<string, SubsetAddress>,
  addresses: readonly JsonValue[],
  isReady: boolean,
): void {
  for (const address of addresses) {
    const key = `${stringAt(address, 'ip')} ${stringAt(address, 'targetRef', 'uid')}`;
    const known = into.get(key);
    if (known === undefined || (known.isReady && !isReady)) {
      into.set(key, { address: known?.address ?? address, isReady });
    }
  }
}

function inOrder(addresses: Map<string, SubsetAddress>): SubsetAddress[] {
  const sorted = [...addresses]
    .toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))
    .map(([, one]) => one);
  return [...sorted.filter((one) => one.isReady), ...sorted.filter((one) => !one.isReady)];
}
