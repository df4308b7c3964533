// shell: a file that a flag names
/** `--egress-selector-config-file`: which ways out are asked for. This server knows one: Direct. */
import { readFileSync } from 'node:fs';
import { listAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { parse } from 'yaml';

const NAMES: ReadonlySet<string> = new Set(['cluster', 'controlplane', 'etcd']);
const VERSIONS: ReadonlySet<string> = new Set(
  ['v1', 'v1beta1', 'v1alpha1'].map((version) => `apiserver.k8s.io/${version}`),
);

/**
 * Throws an Error that names the flag where the file makes no sense, or asks for a proxy: who
 * relies on one must not have connections made past it.
 */
export function checkEgressFile(file: string | undefined): void {
  if (file === undefined) return;
  const fault = faultOf(file);
  if (fault !== null) throw new Error(`--egress-selector-config-file: ${file}: ${fault}`);
}

function faultOf(file: string): string | null {
  let config: JsonObject;
  try {
    config = parse(readFileSync(file, 'utf8'), { schema: 'core' }) as JsonObject;
  } catch (error) {
    return (error as Error).message;
  }
  const isKnown = VERSIONS.has(stringAt(config, 'apiVersion'));
  if (!isKnown || stringAt(config, 'kind') !== 'EgressSelectorConfiguration') {
    return 'an EgressSelectorConfiguration of apiserver.k8s.io/v1beta1 is needed';
  }
  for (const selection of listAt(config, 'egressSelections')) {
    const name = stringAt(selection, 'name');
    if (!NAMES.has(name)) return `${name} is none of ${[...NAMES].join(', ')}`;
    const protocol = stringAt(selection, 'connection', 'proxyProtocol');
    if (protocol === 'Direct') continue;
    return `${name}: proxyProtocol ${protocol} is not offered; the only one is Direct`;
  }
  return null;
}
