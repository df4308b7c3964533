/**
 * `EncryptionConfiguration` of apiserver.config.k8s.io/v1: which resources are sealed, and how. The
 * first provider of a resource seals; all of them open.
 */
import { ownMember } from '@megaplane/base/members';
import { stringAt } from '@megaplane/machinery/json';
import { isObject, type JsonObject, type JsonValue } from '@megaplane/machinery/json-value';
import { findStorage } from '@megaplane/machinery/kinds';
import { cipherOf, KEY_SIZES, type Cipher, type CipherName } from './ciphers.ts';

/** One key of one provider; `cipher` null is identity, which leaves values as they are. */
export interface Provider {
  /** `k8s:enc:aescbc:v1:key1:`; '' for identity. */
  readonly prefix: string;
  readonly cipher: Cipher | null;
}

/** An entry of `resources`. */
export interface Rule {
  /** `secrets`, `deployments.apps`, `*.apps`, `*.` (the core group), `*.*`. */
  readonly resources: readonly string[];
  /** The first seals. Never empty. */
  readonly providers: readonly Provider[];
}

const CIPHERS: readonly CipherName[] = ['aescbc', 'aesgcm', 'secretbox'];
const VERSIONS: ReadonlySet<string> = new Set(['apiserver.config.k8s.io/v1', 'v1']);

/** Checks and reads a configuration. Throws an Error that names the field. */
export function readConfiguration(value: JsonValue | undefined): Rule[] {
  if (!isObject(value)) fail('', 'the file holds no object');
  const [kind, version] = [stringAt(value, 'kind'), stringAt(value, 'apiVersion')];
  if (kind !== 'EncryptionConfiguration' || !VERSIONS.has(version)) {
    const found = `${version}, ${kind}`;
    fail('', `it is of ${found}, not of apiserver.config.k8s.io/v1, EncryptionConfiguration`);
  }
  const seen = new Set<string>();
  const rules = listOf(value, 'resources', 'resources').map((item, index) => {
    const path = `resources[${index}]`;
    if (!isObject(item)) fail(path, 'must be an object');
    const resources = listOf(item, 'resources', `${path}.resources`).map(String);
    for (const name of resources) checkResource(name, `${path}.resources`, seen);
    const providers = listOf(item, 'providers', `${path}.providers`).flatMap((one, at) =>
      readProvider(one, `${path}.providers[${at}]`),
    );
    return { resources, providers };
  });
  return rules;
}

function listOf(object: JsonObject, name: string, path: string): readonly JsonValue[] {
  const list = ownMember(object, name);
  if (!Array.isArray(list) || list.length === 0) fail(path, 'at least one is needed');
  return list;
}

function checkResource(name: string, path: string, seen: Set<string>): void {
  if (seen.has(name)) fail(path, `${name} is named twice`);
  seen.add(name);
  if (name !== name.toLowerCase()) fail(path, `${name}: names are in lower case`);
  if (name === 'events.events.k8s.io') fail(path, `${name}: name them "events"`);
  if (name === '' || (name.includes('*') && !/^\*\.(\*|[a-z0-9.-]*)$/.test(name))) {
    fail(path, `${name}: use '<resource>', '<resource>.<group>', '*.<group>', '*.' or '*.*'`);
  }
}

function readProvider(value: JsonValue, path: string): Provider[] {
  if (!isObject(value)) fail(path, 'must be an object');
  const names = Object.keys(value);
  const [name] = names;
  if (names.length !== 1 || name === undefined) {
    fail(path, 'one of aescbc, aesgcm, secretbox and identity is needed, and no more');
  }
  if (name === 'identity') return [{ prefix: '', cipher: null }];
  if (name === 'kms') fail(path, 'kms is not supported; use aesgcm, aescbc or secretbox');
  const cipher = CIPHERS.find((one) => one === name);
  if (cipher === undefined) fail(path, `${name} is no provider`);
  const config = ownMember(value, name);
  if (!isObject(config)) fail(path, `${name} needs keys`);
  const used = new Set<string>();
  return listOf(config, 'keys', `${path}.${name}.keys`).map((key, index) => {
    const provider = readKey(cipher, key, `${path}.${name}.keys[${index}]`);
    if (used.has(provider.prefix)) fail(path, `two keys of ${name} have the same name`);
    used.add(provider.prefix);
    return provider;
  });
}

function readKey(cipher: CipherName, value: JsonValue, path: string): Provider {
  if (!isObject(value)) fail(path, 'must be an object');
  const { name, secret } = value;
  if (typeof name !== 'string' || name === '') fail(`${path}.name`, 'a name is needed');
  if (name.includes(':')) fail(`${path}.name`, `${name}: a name must not contain ":"`);
  if (typeof secret !== 'string' || secret === '') fail(`${path}.secret`, 'a secret is needed');
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(secret)) fail(`${path}.secret`, 'it is no base64');
  const key = Buffer.from(secret, 'base64');
  const sizes = KEY_SIZES[cipher];
  if (!sizes.includes(key.length)) {
    const expected = `expected one of [${sizes.join(' ')}]`;
    fail(`${path}.secret`, `secret is not of the expected length, got ${key.length}, ${expected}`);
  }
  return { prefix: `k8s:enc:${cipher}:v1:${name}:`, cipher: cipherOf(cipher, key) };
}

/** The providers of a resource, `secrets` or `deployments.apps`; null: values are left alone. */
export function providersOf(rules: readonly Rule[], resource: string): readonly Provider[] | null {
  const dot = resource.indexOf('.');
  const group = dot < 0 ? '' : resource.slice(dot + 1);
  for (const rule of rules) {
    const isMeant = rule.resources.some(
      (name) => name === resource || name === `*.${group}` || name === '*.*',
    );
    if (isMeant) return rule.providers;
  }
  return null;
}

/** Resources that the configuration names and this server does not know, for a warning. */
export function unknownResources(rules: readonly Rule[]): string[] {
  const names = rules.flatMap((rule) => rule.resources);
  return names.filter((name) => !name.includes('*') && findStorage(name) === undefined);
}

function fail(path: string, why: string): never {
  throw new Error(path === '' ? why : `${path}: ${why}`);
}
