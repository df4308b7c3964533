import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { JsonObject } from '@megaplane/machinery/json-value';
import type { WebhookCaller } from '../webhook/webhook-call.ts';
import { createApiServer, type ServerOptions } from '../server/assembly.ts';
import { ExchangeModel } from '../testing/exchange-model.sim.ts';
import { StorageModel } from '../storage/storage-model.sim.ts';

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';
const SPACE = '/api/v1/namespaces/n';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/n/leases';
const UID = /00000000-0000-4000-8000-\d{12}/g;
/** Paths of watchers and rules of what is put in front of writes. */
const RULE = {
  operations: ['*'],
  apiGroups: ['', 'coordination.k8s.io'],
  apiVersions: ['*'],
  resources: ['pods', 'pods/status', 'pods/binding', 'nodes', 'nodes/status', 'leases'],
};

/** A server whose webhooks allow everything, and write down what they are asked. */
function server(isShort: boolean) {
  const storage = new StorageModel();
  const asked: string[] = [];
  const webhooks: WebhookCaller = {
    call(target, body, timeoutMs, then) {
      const { request } = JSON.parse(body.toString()) as { request: JsonObject };
      const { operation, resource, subResource, name } = request;
      asked.push(JSON.stringify([operation, resource, subResource, name]));
      const review = {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: request['uid'], allowed: true },
      };
      then({
        ok: true,
        status: 200,
        contentType: 'application/json',
        body: Buffer.from(JSON.stringify(review)),
      });
    },
  };
  let uuids = 0;
  const later: (() => void)[] = [];
  const edge = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    below: (n: number) => uuids % n,
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, '0')}`,
    defer: (work: () => void) => void later.push(work),
    deferPiece: (work: () => void) => void later.push(work),
  };
  const options: ServerOptions = {
    ...{ storage, edge, webhooks, address: '', disabledPlugins: ['ServiceAccount'] },
    ...{ shortRenewals: isShort, repeatedWrites: isShort },
  };
  const api = createApiServer(options);
  const { renewals } = api.parts;
  let renewed = 0;
  if (renewals !== null) {
    const ordinary = renewals.tryRenew.bind(renewals);
    renewals.tryRenew = (...renewal) => {
      const isShortened = ordinary(...renewal);
      if (isShortened) renewed++;
      return isShortened;
    };
  }
  const ask = (method: string, path: string, body?: unknown, headers = {}): ExchangeModel => {
    const exchange = new ExchangeModel(method, path, body, headers);
    api.handle(exchange);
    exchange.endTurn();
    while (later.length > 0) later.shift()?.();
    return exchange;
  };
  const shortened = (): number => {
    const { repeated } = api.parts;
    return renewed + (repeated?.uses ?? 0) + (repeated?.bindings ?? 0);
  };
  return { ask, asked, shortened };
}

/** Both servers are asked the same, answer the same, and ask their webhooks the same. */
function pair() {
  const fast = server(true);
  const slow = server(false);
  const both = (...request: Parameters<typeof fast.ask>): ExchangeModel => {
    const answer = fast.ask(...request);
    const ordinary = slow.ask(...request);
    const what = request.slice(0, 2).join(' ');
    assert.equal(answer.text.replaceAll(UID, ''), ordinary.text.replaceAll(UID, ''), what);
    assert.equal(answer.status, ordinary.status, what);
    assert.deepEqual(fast.asked, slow.asked, what);
    return answer;
  };
  const made = both('POST', '/api/v1/namespaces', { metadata: { name: 'n' } });
  assert.equal(made.status, 201);
  both('POST', LEASES, leaseOf(0, null));
  return { both, asked: fast.asked, shortened: fast.shortened };
}

function leaseOf(second: number, metadata: JsonObject | null): JsonObject {
  const time = `2026-01-02T03:04:${String(second % 60).padStart(2, '0')}.000000Z`;
  return {
    kind: 'Lease',
    apiVersion: 'coordination.k8s.io/v1',
    metadata: metadata ?? { name: 'l' },
    spec: { holderIdentity: 'l', leaseDurationSeconds: 40, renewTime: time },
  };
}

type Pair = ReturnType<typeof pair>;

/** Writes of which each has a short way. */
const WRITES: Readonly<Record<string, (both: Pair['both'], count: number) => void>> = {
  renew(both, count) {
    const { metadata } = JSON.parse(both('GET', `${LEASES}/l`).text) as { metadata: JsonObject };
    // uids are drawn by each server
    const { uid: _, ...own } = metadata;
    both('PUT', `${LEASES}/l`, leaseOf(count, own));
  },
  lease: (both, count) => {
    both('POST', LEASES, { ...leaseOf(1, null), metadata: { name: `l-${count}` } });
  },
  pod: (both, count) => {
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    const metadata = { name: `p-${count}`, generateName: 'p-' };
    both('POST', `${SPACE}/pods`, { kind: 'Pod', apiVersion: 'v1', metadata, spec });
  },
  bind: (both, count) => {
    both('POST', `${SPACE}/pods/p-${count - 1}/binding`, {
      kind: 'Binding',
      apiVersion: 'v1',
      metadata: { name: `p-${count - 1}`, namespace: 'n' },
      target: { kind: 'Node', name: 'node' },
    });
  },
  status: (both, count) => {
    const headers = { 'content-type': 'application/strategic-merge-patch+json' };
    const condition = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-02T03:04:05Z' };
    const status = { phase: 'Running', conditions: [condition] };
    both('PATCH', `${SPACE}/pods/p-${count - 1}/status`, { status }, headers);
  },
  node: (both, count) => {
    const metadata = { name: `node-${count}` };
    both('POST', '/api/v1/nodes', { kind: 'Node', apiVersion: 'v1', metadata });
  },
};

/** What may look at a write: put there and taken away again. */
const WATCHERS: Readonly<Record<string, (both: Pair['both'], isThere: boolean) => void>> = {
  policy(both, isThere) {
    const policies = `${REGISTRATION}/validatingadmissionpolicies`;
    const bindings = `${REGISTRATION}/validatingadmissionpolicybindings`;
    if (!isThere) {
      both('DELETE', `${bindings}/b`);
      both('DELETE', `${policies}/p`);
      return;
    }
    both('POST', policies, {
      metadata: { name: 'p' },
      spec: {
        matchConstraints: { resourceRules: [RULE] },
        validations: [{ expression: 'request.operation == "DELETE"', message: 'all are bad' }],
      },
    });
    both('POST', bindings, {
      metadata: { name: 'b' },
      spec: { policyName: 'p', validationActions: ['Deny'] },
    });
  },
  validating: (both, isThere) => webhook(both, 'validatingwebhookconfigurations', isThere),
  mutating: (both, isThere) => webhook(both, 'mutatingwebhookconfigurations', isThere),
  quota: (both, isThere) => {
    const hard = { pods: '1', 'count/leases.coordination.k8s.io': '1' };
    if (isThere)
      both('POST', `${SPACE}/resourcequotas`, { metadata: { name: 'q' }, spec: { hard } });
    else both('DELETE', `${SPACE}/resourcequotas/q`);
  },
};

function webhook(both: Pair['both'], plural: string, isThere: boolean): void {
  const path = `${REGISTRATION}/${plural}`;
  if (!isThere) {
    both('DELETE', `${path}/w`);
    return;
  }
  const clientConfig = { url: 'https://127.0.0.1:1/' };
  const rest = { sideEffects: 'None', admissionReviewVersions: ['v1'] };
  both('POST', path, {
    metadata: { name: 'w' },
    webhooks: [{ name: 'w.example.com', rules: [RULE], clientConfig, ...rest }],
  });
}

test('whatever may look at a write sees it, and has its say, with short ways and without', () => {
  const names = [...Object.keys(WRITES), ...Object.keys(WRITES), ...Object.keys(WATCHERS)];
  let shortened = 0;
  let asked = 0;
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...names), { minLength: 6, maxLength: 24 }), (steps) => {
      const servers = pair();
      const there = new Set<string>();
      let count = 1;
      for (const step of steps) {
        const watcher = WATCHERS[step];
        if (watcher === undefined) {
          for (let times = 0; times < 4; times++) WRITES[step]?.(servers.both, count++);
          continue;
        }
        if (!there.delete(step)) there.add(step);
        watcher(servers.both, there.has(step));
      }
      shortened += servers.shortened();
      asked += servers.asked.length;
    }),
    { seed: 10, numRuns: 30 },
  );
  assert.ok(shortened > 100, `short ways were taken ${shortened} times`);
  assert.ok(asked > 100, `webhooks were asked ${asked} times`);
});

test('a renewal is refused by a policy, asked of a webhook, and renewed once they are gone', () => {
  const { both, asked, shortened } = pair();
  const renew = (): void => WRITES['renew']?.(both, count++);
  let count = 1;
  renew();
  assert.equal(shortened(), 1);
  for (const name of ['policy', 'validating', 'mutating']) {
    const before = { shortened: shortened(), asked: asked.length };
    WATCHERS[name]?.(both, true);
    renew();
    assert.equal(shortened(), before.shortened, name);
    assert.equal(asked.length, before.asked + (name === 'policy' ? 0 : 1), name);
    WATCHERS[name]?.(both, false);
    renew();
    assert.equal(shortened(), before.shortened + 1, name);
  }
});
