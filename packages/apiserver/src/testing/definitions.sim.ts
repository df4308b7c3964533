/** A server on a model of storage, and definitions for it, for tests of custom resources. */
import assert from 'node:assert/strict';
import { createApiServer, type ServerOptions } from '../server/assembly.ts';
import { ExchangeModel } from './exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';
import type { Storage } from '../storage/storage.ts';
import type { ApiServer } from '../server/server.ts';

export const DEFINITIONS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
export const MERGE: Readonly<Record<string, string>> = {
  'content-type': 'application/merge-patch+json',
};

type Json = Record<string, unknown>;

/** Sends one request; the answer is there when the call returns, unless somebody is waited for. */
export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Readonly<Record<string, string>>,
) => ExchangeModel;

export interface Rig {
  readonly api: ApiServer;
  readonly storage: Storage;
  readonly ask: Ask;
  /** Does what was put off, until nothing is; tells how many turns that took. */
  readonly settle: () => number;
}

/** A server with a namespace `default`; `isCrowded`: no turn has room for long work. */
export function startRig(
  more: Partial<ServerOptions> = {},
  storage: Storage = new StorageModel(),
  isCrowded = false,
): Rig {
  let uuids = 0;
  const later: (() => void)[] = [];
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => void later.push(work),
    deferPiece: (work: () => void) => void later.push(work),
    runPiece: (work: () => void, waits: () => void) => {
      if (isCrowded) waits();
      if (isCrowded) later.push(work);
      else work();
    },
    walk: (steps: Iterator<void>, waits: () => void, done: () => void) => {
      const go = (): void => {
        while (steps.next().done !== true) {
          if (!isCrowded) continue;
          later.push(go);
          return;
        }
        done();
      };
      if (isCrowded) waits();
      if (isCrowded) later.push(go);
      else go();
    },
  };
  const api = createApiServer({ storage, edge, address: '127.0.0.1:6443', ...more });
  const ask: Ask = (method, path, body, headers) => {
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    return exchange;
  };
  const settle = (): number => {
    let turns = 0;
    for (let work = later.shift(); work !== undefined; work = later.shift()) {
      work();
      turns++;
    }
    return turns;
  };
  ask('POST', '/api/v1/namespaces', { metadata: { name: 'default' } });
  return { api, storage, ask, settle };
}

const SCHEMA: Json = {
  type: 'object',
  properties: {
    spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

/** One version of a definition; the first one of a list is the one that is stored. */
export function versionOf(name: string, more: Json = {}): Json {
  return { name, served: true, storage: false, schema: { openAPIV3Schema: SCHEMA }, ...more };
}

/** A definition of `plural` in `example.com`; its kind is `Widget` for `widgets`. */
export function definitionOf(plural: string, versions: Json[], spec: Json = {}): Json {
  const singular = plural.replace(/s$/, '');
  const kind = singular.charAt(0).toUpperCase() + singular.slice(1);
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, singular, kind, listKind: `${kind}List` },
      versions: versions.map((one, index) => ({ ...one, storage: index === 0 })),
      ...spec,
    },
  };
}

/** Makes a definition; fails the test where it is refused. */
export function define({ ask, settle }: Rig, definition: Json): void {
  const made = ask('POST', DEFINITIONS, definition);
  assert.equal(made.status, 201, made.text);
  settle();
}
