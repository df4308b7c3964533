/** A server in memory, with a namespace and a service account, for tests of admission. */
import assert from 'node:assert/strict';
import { createApiServer, type ServerOptions } from '../server/assembly.ts';
import { ConnectionModel, ExchangeModel } from './exchange-model.sim.ts';
import type { ApiServer } from '../server/server.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

export type Ask = (
  method: string,
  path: string,
  body?: unknown,
  headers?: Record<string, string>,
) => ExchangeModel;

export interface AdmittingModel {
  readonly api: ApiServer;
  readonly ask: Ask;
  /** As `ask`, with the status of the answer checked. */
  readonly expect: (status: number, method: string, path: string, body?: unknown) => ExchangeModel;
}

export function admittingModel(more: Partial<ServerOptions> = {}): AdmittingModel {
  let uuids = 0;
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: () => 0,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => void setImmediate(work),
    deferPiece: (work: () => void) => void setImmediate(work),
  };
  const storage = new StorageModel();
  const api = createApiServer({ storage, edge, address: '127.0.0.1:6443', ...more });
  const ask: Ask = (method, path, body, headers) => {
    const type: Record<string, string> =
      method === 'PATCH' ? { 'content-type': 'application/merge-patch+json' } : {};
    // a token counts only where the socket does not say who is there
    const connection = new ConnectionModel(headers?.['authorization'] === undefined);
    const exchange = new ExchangeModel(method, path, body, { ...type, ...headers }, connection);
    api.handle(exchange);
    return exchange;
  };
  const expect: AdmittingModel['expect'] = (status, method, path, body) => {
    const answer = ask(method, path, body);
    assert.equal(answer.status, status, answer.text);
    return answer;
  };
  expect(201, 'POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  expect(201, 'POST', '/api/v1/namespaces/n/serviceaccounts', { metadata: { name: 'default' } });
  return { api, ask, expect };
}

/** The message of a Status. */
export function messageOf(answer: ExchangeModel): string {
  return (JSON.parse(answer.text) as { message?: string }).message ?? '';
}

/** A pod of one container with these resources. */
export function podOf(name: string, resources: object = {}, more: object = {}): object {
  return {
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i', resources }], ...more },
  };
}
