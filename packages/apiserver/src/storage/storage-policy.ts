/** `--durability` and `--history-limit`: what is promised for which objects. */
import { parseByteSize } from '@megaplane/base/limits';
import { findStorage } from '@megaplane/machinery/kinds';
import type { Durability, PrefixPolicy, StorageOptions } from '@megaplane/store/contract';
import { TEMPLATES_PREFIX } from '../managedfields/template-keeper.ts';

/** What did not change for so long is packed: a write is often followed by others. */
const PACK_AFTER_MS = 10_000;

/** Renewed each ten seconds or more often: what was packed sooner would be packed for nothing. */
const RENEWED = 'leases.coordination.k8s.io';
const PACK_RENEWED_AFTER_MS = 60_000;

interface Policy {
  packAfterMs?: number;
  durability?: Durability;
  historyBytesMax?: number;
  historyBytesMin?: number;
}

/** Superseded versions of a resource that are kept, unless said otherwise. */
const HISTORY_BYTES_MAX: number = 64 * 1024 * 1024;

/** Half of what is alive, within bounds. */
const GROWING: Policy = {
  historyBytesMin: HISTORY_BYTES_MAX,
  historyBytesMax: 16 * HISTORY_BYTES_MAX,
};

/**
 * Kinds with a budget of their own. Pods and nodes are large and change in waves: a client that
 * reads a hundred thousand of them must still find the changes that happened meanwhile, and how
 * long it reads grows with their number: a watch that was cut off while a million nodes came had to
 * read 4 GB anew, which took three minutes of a machine that was busy.
 */
const HISTORY_LIMITS: Readonly<Record<string, Policy>> = {
  pods: GROWING,
  nodes: GROWING,
  events: { historyBytesMax: HISTORY_BYTES_MAX },
  'leases.coordination.k8s.io': { historyBytesMax: HISTORY_BYTES_MAX },
};

/** From the weakest to the strongest. */
const DURABILITIES: readonly Durability[] = ['none', 'buffered', 'fsync'];

/**
 * Both flags are lists: `resource=value` for a resource (`leases.coordination.k8s.io`) or a key
 * prefix (`/registry/leases/`), a bare value for all others. Throws with the flag's name where a
 * part is not understood.
 */
export function storagePolicy(
  dataDir: string | null,
  durabilityText: string,
  historyText: string,
): StorageOptions {
  const policies = new Map<string, Policy>();
  let durability: Durability = 'buffered';
  let historyBytesMax = HISTORY_BYTES_MAX;
  for (const { prefix, value } of parts('--durability', durabilityText)) {
    if (!DURABILITIES.some((one) => one === value)) {
      throw new Error(`--durability: ${value} is not one of ${DURABILITIES.join(', ')}`);
    }
    if (prefix === null) durability = value as Durability;
    else policies.set(prefix, { ...policies.get(prefix), durability: value as Durability });
  }
  for (const { prefix, value } of parts('--history-limit', historyText)) {
    const bytes = bytesOf(value);
    if (prefix === null) historyBytesMax = bytes;
    else policies.set(prefix, { ...policies.get(prefix), historyBytesMax: bytes });
  }
  for (const [name, limit] of Object.entries(HISTORY_LIMITS)) {
    const prefix = prefixOf('--history-limit', name);
    const chosen = policies.get(prefix);
    const isChosen = chosen?.historyBytesMax !== undefined;
    policies.set(prefix, isChosen ? chosen : { ...limit, ...chosen });
  }
  const renewed = prefixOf('--history-limit', RENEWED);
  policies.set(renewed, { ...policies.get(renewed), packAfterMs: PACK_RENEWED_AFTER_MS });
  // an object that outlives a crash needs the templates that it names
  const strongest = strongestOf([...policies.values()], durability);
  if (strongest !== durability) policies.set(TEMPLATES_PREFIX, { durability: strongest });
  const prefixes: PrefixPolicy[] = [...policies].map(([prefix, policy]) => ({ prefix, ...policy }));
  return { dataDir, durability, prefixes, historyBytesMax, packAfterMs: PACK_AFTER_MS };
}

function strongestOf(policies: readonly Policy[], durability: Durability): Durability {
  const ranks = policies.map((one) => DURABILITIES.indexOf(one.durability ?? durability));
  const rank = Math.max(DURABILITIES.indexOf(durability), ...ranks);
  return DURABILITIES[rank] ?? durability;
}

function bytesOf(text: string): number {
  const parsed = parseByteSize(text);
  if (parsed.kind === 'invalid') throw new Error(`--history-limit: ${parsed.message}`);
  return parsed.value;
}

function parts(flag: string, text: string): { prefix: string | null; value: string }[] {
  const found: { prefix: string | null; value: string }[] = [];
  for (const part of text.split(',')) {
    if (part.trim() === '') continue;
    const at = part.lastIndexOf('=');
    const value = part.slice(at + 1).trim();
    found.push({ prefix: at < 0 ? null : prefixOf(flag, part.slice(0, at).trim()), value });
  }
  return found;
}

function prefixOf(flag: string, name: string): string {
  if (name.startsWith('/')) return name;
  const storage = findStorage(name);
  if (storage === undefined) {
    throw new Error(
      `${flag}: ${name} is no resource; write it as resource or resource.group, ` +
        'for example leases.coordination.k8s.io',
    );
  }
  return storage.prefix;
}
