/** What a pod takes from its node, as bytes: after a resize it is not what its spec says. */
import { parseJson } from '@megaplane/machinery/json-text';
import type { Resources } from '../../api/resources.ts';

export interface Sums {
  readonly requests: Resources;
  readonly requestsNonZero: Resources;
}

interface Written {
  readonly amounts: readonly number[];
  readonly nonZero: readonly number[];
  readonly scalars: readonly (readonly [string, number])[];
}

const amountsOf = ({ milliCpu, memory, ephemeral }: Resources): readonly number[] => [
  milliCpu,
  memory,
  ephemeral,
];

export function sumsBytes({ requests, requestsNonZero }: Sums): Buffer {
  const written: Written = {
    amounts: amountsOf(requests),
    nonZero: amountsOf(requestsNonZero),
    scalars: [...requests.scalars],
  };
  return Buffer.from(JSON.stringify(written));
}

/** Throws where the bytes are none that `sumsBytes` made. */
export function sumsOf(bytes: Uint8Array): Sums {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8');
  const { amounts, nonZero, scalars } = parseJson(text) as unknown as Written;
  const resources = ([milliCpu = 0, memory = 0, ephemeral = 0]: readonly number[]): Resources => ({
    ...{ milliCpu, memory, ephemeral },
    scalars: new Map(scalars),
  });
  return { requests: resources(amounts), requestsNonZero: resources(nonZero) };
}
