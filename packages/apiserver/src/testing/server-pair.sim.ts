/** Two servers that are asked the same, one of them without templates: answers must be the same. */
import assert from 'node:assert/strict';
import { createApiServer, type ServerOptions } from '../server/assembly.ts';
import type { Ask } from './admitting.sim.ts';
import { ConnectionModel, ExchangeModel } from './exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

type Options = Partial<ServerOptions>;

function server(options: Options, repeatedWrites: boolean) {
  const storage = new StorageModel();
  let uuids = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: (n: number) => uuids % n,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: () => undefined,
    deferPiece: () => undefined,
  };
  const address = '127.0.0.1:6443';
  const api = createApiServer({ storage, edge, address, repeatedWrites, ...options });
  const ask: Ask = (method, path, body, headers) => {
    // a token counts only where the socket does not say who is there
    const connection = new ConnectionModel(headers?.['authorization'] === undefined);
    const exchange = new ExchangeModel(method, path, body, headers, connection);
    api.handle(exchange);
    return exchange;
  };
  return { ask, repeated: api.parts.repeated };
}

/** Uids, which the servers draw by themselves, do not count. */
const UID = /00000000-0000-4000-8000-\d{12}/g;

export interface ServerPair {
  /** Asks both. */
  readonly both: Ask;
  /** What was made from templates, and bindings by the short way. */
  readonly uses: () => number;
  readonly bindings: () => number;
}

export function serverPair(options: Options): ServerPair {
  const fast = server(options, true);
  const slow = server(options, false);
  const both: Ask = (...request) => {
    const answer = fast.ask(...request);
    const ordinary = slow.ask(...request);
    assert.equal(answer.text.replaceAll(UID, ''), ordinary.text.replaceAll(UID, ''));
    assert.equal(answer.status, ordinary.status);
    assert.equal(answer.header('warning'), ordinary.header('warning'));
    return answer;
  };
  const uses = (): number => fast.repeated?.uses ?? 0;
  const bindings = (): number => fast.repeated?.bindings ?? 0;
  return { both, uses, bindings };
}
