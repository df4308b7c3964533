/** Seals and opens values by the rules of a configuration, which may be replaced at any time. */
import { allStorages } from '@megaplane/machinery/kinds';
import { MASTER_LEASE_PREFIX, MASTER_LEASE_RESOURCE } from '../master-leases.ts';
import { providersOf, type Provider, type Rule } from './encryption-config.ts';

/** What sealed values begin with. */
const SEAL_START = 'k8s:enc:';
const START_BYTES = Buffer.from(SEAL_START, 'latin1');
/** Prefixes of sealed values are no longer than this. */
const SEAL_BYTES_MAX = 512;
const PLAIN: readonly Provider[] = [{ prefix: '', cipher: null }];

export interface Opened {
  readonly value: Buffer;
  /** By which key it was sealed: `k8s:enc:aescbc:v1:key1:`; '' where it was not. */
  readonly seal: string;
}

export class ValueSealer {
  #rules: readonly Rule[];
  /** Providers by the part of a key that names its resource. */
  readonly #providers = new Map<string, readonly Provider[]>();
  readonly #resources = new Map<string, string>();

  constructor(rules: readonly Rule[]) {
    this.#rules = rules;
    for (const { prefix, name } of allStorages()) this.#resources.set(prefix, name);
    this.#resources.set(MASTER_LEASE_PREFIX, MASTER_LEASE_RESOURCE);
  }

  /** From now on values are sealed by these rules. */
  replace(rules: readonly Rule[]): void {
    this.#rules = rules;
    this.#providers.clear();
  }

  /** The seal that `seal` puts on a value of this key. `key` is `/registry/...`. */
  sealOf(key: string): string {
    return this.#of(key)[0]?.prefix ?? '';
  }

  /** The value as it is kept; `context` is the key in storage. */
  seal(key: string, context: Buffer, value: Buffer): Buffer {
    const provider = this.#of(key)[0];
    if (provider === undefined || provider.cipher === null) return value;
    const { prefix, cipher } = provider;
    return Buffer.concat([Buffer.from(prefix, 'latin1'), cipher.seal(value, context)]);
  }

  /** The value as it was given. Throws an Error where no key of the configuration opens it. */
  open(key: string, context: Buffer, value: Buffer): Opened {
    if (!isSealed(value, 0)) return { value, seal: '' };
    const start = value.toString('latin1', 0, SEAL_BYTES_MAX);
    const provider = this.#of(key).find(
      ({ prefix, cipher }) => cipher !== null && start.startsWith(prefix),
    );
    if (provider === undefined) {
      const seal = start.split(':').slice(0, 5).join(':');
      throw new Error(`no matching prefix found: it is sealed as ${seal}`);
    }
    const { prefix, cipher } = provider;
    const opened = cipher?.open(value.subarray(prefix.length), context) ?? null;
    if (opened === null) throw new Error(`the key of ${prefix} does not open it`);
    return { value: opened, seal: prefix };
  }

  #of(key: string): readonly Provider[] {
    const place = this.#placeOf(key);
    let found = this.#providers.get(place);
    if (found === undefined) {
      const resource = this.#resources.get(place) ?? customResource(place);
      found = providersOf(this.#rules, resource) ?? PLAIN;
      this.#providers.set(place, found);
    }
    return found;
  }

  /** The start of the key that names its resource, with a slash at its end. */
  #placeOf(key: string): string {
    let slash = key.indexOf('/', '/registry/'.length);
    for (let parts = 0; slash >= 0 && parts < 3; parts++) {
      const place = key.slice(0, slash + 1);
      if (this.#resources.has(place)) return place;
      slash = key.indexOf('/', slash + 1);
    }
    const [, , group = '', resource = ''] = key.split('/');
    return `/registry/${group}/${resource}/`;
  }
}

/** `/registry/example.com/widgets/` holds `widgets.example.com`. */
function customResource(place: string): string {
  const [, , group = '', resource = ''] = place.split('/');
  return `${resource}.${group}`;
}

/** True where the bytes at `at` are the start of a sealed value. */
export function isSealed(bytes: Buffer, at: number): boolean {
  if (bytes[at] !== START_BYTES[0]) return false;
  return bytes.subarray(at, at + START_BYTES.length).equals(START_BYTES);
}
