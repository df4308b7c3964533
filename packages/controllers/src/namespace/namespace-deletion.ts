/**
 * Empties namespaces that are being deleted, then takes their finalizer away.
 *
 * Pods go first, and the rest only when none is left: what pods lean on (secrets, network policies)
 * must not vanish under those that still run. Whether pods are left is unknown where they cannot be
 * looked at: then the rest waits too, where upstream's controller goes on. Each round deletes what
 * is left of every namespaced resource, writes down in the namespace's conditions what holds it up,
 * and comes again until nothing is left.
 */
import type { Client } from '@megaplane/client/client';
import { CONTENT } from '@megaplane/client/client';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import {
  collectionPath,
  groupVersionOf,
  objectPath,
  type ApiResource,
  type Discovered,
  type ResourceDiscovery,
} from '../framework/api-resources.ts';
import { deletionConditions } from './namespace-status.ts';
import type { WorkResult } from '../framework/workers.ts';

/**
 * What is left is looked at again, each time half as long again after, so that a namespace that a
 * finalizer holds for days costs a look at all kinds now and then, not each second.
 */
const LEFT_AGAIN_MS_MIN = 500;
const LEFT_AGAIN_MS_MAX = 15_000;
/** Objects of one resource that a round looks at for their finalizers. */
const LOOK_MAX = 100;
/** Objects that one request deletes. */
const PAGE_MAX = 1000;

/** Rounds after which all is told to go again: another server may have let something in late. */
const TELL_AGAIN_ROUNDS = 4;

interface Round {
  /**
   * Resources all of whose objects were told to go before, which is not done again each time: a
   * hundred thousand pods that take their time would all be gone through.
   */
  readonly told: Set<string>;
  /** How long the namespace has been going. */
  readonly goingMs: number;
  readonly errors: string[];
  /** What nothing holds and what is there all the same: told as errors are, and waited for. */
  readonly leftovers: string[];
  readonly remaining: Map<string, number>;
  readonly finalizers: Map<string, number>;
}

/** What the last round of a namespace left. */
export interface Left {
  /** How many rounds have left something. */
  readonly rounds: number;
  readonly objects: number;
  readonly atMs: number;
  /** Resources all of whose objects were told to go. */
  readonly told: ReadonlySet<string>;
}

/** How long what is `left` is waited for: no longer than it takes to go at the pace so far. */
export function againAfterMs(left: Left, before: Left | null): number {
  const longestMs = Math.min(LEFT_AGAIN_MS_MIN * 1.5 ** (left.rounds - 1), LEFT_AGAIN_MS_MAX);
  const gone = before === null ? 0 : before.objects - left.objects;
  if (before === null || gone <= 0) return longestMs;
  const expectedMs = ((left.atMs - before.atMs) * left.objects) / gone;
  return Math.max(LEFT_AGAIN_MS_MIN, Math.min(longestMs, expectedMs));
}

/**
 * Deletes one namespace; to be called until it says `done`. `before` is what the round before left,
 * and `tell` is told what this one leaves.
 */
export async function deleteNamespace(
  discovery: ResourceDiscovery,
  name: string,
  now: () => string,
  before: Left | null,
  tell: (left: Left) => void,
): Promise<WorkResult> {
  const { client } = discovery;
  const path = `/api/v1/namespaces/${name}`;
  const answer = await client.request({ method: 'GET', path });
  if (!answer.ok) return answer.code === 404 ? 'done' : 'retry';
  const namespace = answer.object;
  if (stringAt(namespace, 'metadata', 'deletionTimestamp') === '') return 'done';
  if (!listAt(namespace, 'spec', 'finalizers').includes('kubernetes')) return 'done';
  const { resources, failed } = await discovery.discover();
  const since = parseTime(stringAt(namespace, 'metadata', 'deletionTimestamp'))?.seconds ?? 0;
  const goingMs = client.timers.wallMs() - since * 1000;
  const isAgain = before !== null && before.rounds % TELL_AGAIN_ROUNDS === 0;
  const round: Round = {
    told: new Set(isAgain ? [] : before?.told),
    ...{ goingMs, errors: [], leftovers: [] },
    ...{ remaining: new Map(), finalizers: new Map() },
  };
  await emptyNamespace(client, name, { resources, failed }, round);
  const errors = [...round.errors, ...round.leftovers];
  const findings = { ...round, errors, undiscovered: failed };
  const conditions = deletionConditions(namespace, findings, now());
  if (conditions !== undefined) {
    const body = { status: { conditions } };
    const contentType = CONTENT.mergePatch;
    const written = await client.request({
      method: 'PATCH',
      path: `${path}/status`,
      contentType,
      body,
    });
    if (!written.ok && written.code === 404) return 'done';
  }
  const isBroken = failed.length > 0 || round.errors.length > 0;
  if (isBroken) return 'retry';
  if (round.remaining.size > 0) {
    const objects = [...round.remaining.values()].reduce((sum, count) => sum + count, 0);
    const rounds = (before?.rounds ?? 0) + 1;
    const left = { rounds, objects, atMs: client.timers.nowMs(), told: round.told };
    tell(left);
    return { againMs: againAfterMs(left, before) };
  }
  return finalize(client, name);
}

async function emptyNamespace(
  client: Client,
  namespace: string,
  { resources, failed }: Discovered,
  round: Round,
): Promise<void> {
  const deletable = resources.filter(
    ({ namespaced, verbs }) => namespaced && verbs.includes('delete') && verbs.includes('list'),
  );
  const isPods = ({ group, resource }: ApiResource): boolean => group === '' && resource === 'pods';
  const pods = deletable.filter(isPods);
  for (const resource of pods) await emptyResource(client, namespace, resource, round);
  const isUnknown = round.errors.length > 0 || (pods.length === 0 && failed.length > 0);
  if (isUnknown || round.remaining.size > 0) return;
  const others = deletable.filter((resource) => !isPods(resource));
  await Promise.all(others.map((resource) => emptyResource(client, namespace, resource, round)));
}

async function emptyResource(
  client: Client,
  namespace: string,
  resource: ApiResource,
  round: Round,
): Promise<void> {
  const name = `${resource.resource}.${resource.group}`;
  const path = collectionPath(resource, namespace);
  const look = `${path}?limit=${LOOK_MAX}`;
  const before = await client.request({ method: 'GET', path: look });
  if (!before.ok) {
    if (before.code !== 404 && before.code !== 405) round.errors.push(textOf(before.status, name));
    return;
  }
  const found = listAt(before.object, 'items');
  if (found.length === 0) return;
  const areGoing = found.every((item) => stringAt(item, 'metadata', 'deletionTimestamp') !== '');
  if (!areGoing || !round.told.has(name)) {
    const { length } = round.errors;
    await deleteAll(client, namespace, resource, before.object, round);
    if (round.errors.length === length) round.told.add(name);
  }
  const after = await client.request({ method: 'GET', path: look });
  if (!after.ok) {
    round.errors.push(textOf(after.status, name));
    return;
  }
  const items = listAt(after.object, 'items');
  const more = numberAt(after.object, 'metadata', 'remainingItemCount');
  if (items.length === 0) return;
  round.remaining.set(name, items.length + more);
  let isHeld = false;
  for (const item of items) {
    for (const finalizer of listAt(item, 'metadata', 'finalizers')) {
      if (typeof finalizer !== 'string') continue;
      isHeld = true;
      round.finalizers.set(finalizer, (round.finalizers.get(finalizer) ?? 0) + 1);
    }
  }
  // What nothing holds should have gone by now: a kubelet is silent, or somebody makes it anew.
  if (isHeld || round.goingMs < graceMsOf(items, resource)) return;
  const kind = `${groupVersionOf(resource)}, Resource=${resource.resource}`;
  const gvr = resource.group === '' ? `/${kind}` : kind;
  round.leftovers.push(`unexpected items still remain in namespace: ${namespace} for gvr: ${gvr}`);
}

/** The longest that pods may take to end; other kinds take no time. */
function graceMsOf(items: readonly JsonValue[], { group, resource }: ApiResource): number {
  if (group !== '' || resource !== 'pods') return 0;
  const seconds = items
    .filter((pod) => !/^(Succeeded|Failed)$/.test(stringAt(pod, 'status', 'phase')))
    .map((pod) => numberAt(pod, 'spec', 'terminationGracePeriodSeconds'));
  return Math.max(0, ...seconds) * 1000;
}

async function deleteAll(
  client: Client,
  namespace: string,
  resource: ApiResource,
  list: JsonObject,
  round: Round,
): Promise<void> {
  const body = { propagationPolicy: 'Background' };
  if (resource.verbs.includes('deletecollection')) {
    // in pages: the answer tells all of each object that goes
    const path = `${collectionPath(resource, namespace)}?limit=${PAGE_MAX}`;
    let page = path;
    while (page !== '') {
      const gone = await client.request({ method: 'DELETE', path: page, body });
      if (!gone.ok && gone.code !== 404) round.errors.push(textOf(gone.status, resource.resource));
      const next = gone.ok ? stringAt(gone.object, 'metadata', 'continue') : '';
      page = next === '' ? '' : `${path}&continue=${encodeURIComponent(next)}`;
    }
    return;
  }
  for (const item of listAt(list, 'items')) {
    const path = objectPath(resource, namespace, stringAt(item, 'metadata', 'name'));
    const gone = await client.request({ method: 'DELETE', path, body });
    if (!gone.ok && gone.code !== 404) round.errors.push(textOf(gone.status, resource.resource));
  }
}

function textOf(status: { readonly message?: string }, resource: string): string {
  return `${resource}: ${status.message ?? 'no answer'}`;
}

/** Takes the finalizer away, with the newest state of the namespace. */
async function finalize(client: Client, name: string): Promise<WorkResult> {
  const path = `/api/v1/namespaces/${name}`;
  const answer = await client.request({ method: 'GET', path });
  if (!answer.ok) return answer.code === 404 ? 'done' : 'retry';
  const finalizers = listAt(answer.object, 'spec', 'finalizers').filter(
    (one) => one !== 'kubernetes',
  );
  const body = { ...answer.object, spec: { finalizers: [...finalizers] } };
  const written = await client.request({ method: 'PUT', path: `${path}/finalize`, body });
  return written.ok || written.code === 404 ? 'done' : 'retry';
}
