/**
 * Which part of the nodes is ours, when several simulators share a cluster: `--shard 2/8` says it
 * once and for all, `--shard auto` lets them find out: each keeps a Lease, and the living ones are
 * counted in the order of their names.
 *
 * Clocks need not agree: a member lives as long as its lease is seen to change.
 */
import type { Client } from '@megaplane/client/client';
import { listAt, numberAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { microTime } from '../lease/lease-object.ts';

/** One of `count` parts, from 0. */
export interface Part {
  readonly index: number;
  readonly count: number;
}

export const WHOLE: Part = { index: 0, count: 1 };
export const PARTS_MAX = 1024;

const PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
const LABEL = 'megaplane.dev/nodes-member';
/** Members renew and look at this period; one that was silent for three of them is gone. */
export const PERIOD_MS = 4000;
export const SILENT_MS: number = 3 * PERIOD_MS;
/** So long after something has changed all members know it. */
export const SPREAD_MS: number = PERIOD_MS + 500;
/** A member is gone when so many looks have found nothing new of it: we may have been away. */
const SILENT_LOOKS = 3;
/** Leases of members that were killed are deleted after so long. */
const FORGOTTEN_MS = 600_000;
const START_LOOK_MS = 250;
/** Who leaves does not wait longer for a server that does not answer. */
const LEAVE_MS = 2000;

/** Reads `I/N`; an Error that says what is wrong with it. */
export function parsePart(text: string): Part | Error {
  const match = /^(\d{1,4})\/(\d{1,4})$/.exec(text);
  const part = { index: Number(match?.[1]), count: Number(match?.[2]) };
  if (match === null) return new Error(`--shard: ${text} is neither auto nor I/N, such as 0/4`);
  if (part.count < 1 || part.count > PARTS_MAX) {
    return new Error(`--shard: ${text}: the number of shards is from 1 to ${PARTS_MAX}`);
  }
  if (part.index < part.count) return part;
  return new Error(`--shard: ${text}: shards are counted from 0, so the last is ${part.count - 1}`);
}

export interface MembershipOptions {
  readonly client: Client;
  /** Unique among the members, a name that objects may have. */
  readonly identity: string;
  onPart(part: Part): void;
  onTrouble(message: string): void;
}

interface Seen {
  readonly renewTime: string;
  readonly sinceMs: number;
  looks: number;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #seen: Map<string, Seen> = new Map();
  #part: Part | null = null;
  /** When we began to look for the last time that led to something. */
  #sureMs = 0;
  /** After a silence: when all others must have heard of us again. */
  #againMs = 0;
  #isStopped = false;
  #cancel: () => void = () => {};

  constructor(options: MembershipOptions) {
    this.#options = options;
  }

  /** Resolves with our part as of now; `onPart` tells when it becomes another one. */
  async start(): Promise<Part> {
    const { timers } = this.#options.client;
    await this.#turn();
    // who does not know his part must not take the whole
    while (this.#part === null && !this.#isStopped) {
      await new Promise<void>((resolve) => timers.after(START_LOOK_MS, resolve));
    }
    return this.#part ?? WHOLE;
  }

  /** We were not silent so long that others have taken our part, or they know us again. */
  get isSure(): boolean {
    const nowMs = this.#options.client.timers.nowMs();
    return nowMs - this.#sureMs < SILENT_MS && nowMs >= this.#againMs;
  }

  /** Leaves: the others need not wait for our silence. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    const { client, identity } = this.#options;
    const path = `${PATH}/${identity}`;
    await client.request({ method: 'DELETE', path, timeoutMs: LEAVE_MS });
  }

  async #turn(): Promise<void> {
    const nowMs = this.#options.client.timers.nowMs();
    try {
      await this.#renew();
      await this.#look();
      if (nowMs - this.#sureMs >= SILENT_MS) this.#againMs = nowMs + SPREAD_MS;
      this.#sureMs = nowMs;
    } catch (error) {
      this.#options.onTrouble(`--shard auto: ${(error as Error).message}`);
    }
    if (this.#isStopped) return;
    const { timers } = this.#options.client;
    this.#cancel = timers.after(PERIOD_MS, () => void this.#turn());
  }

  async #renew(): Promise<void> {
    const { client, identity } = this.#options;
    const path = `${PATH}/${identity}`;
    const found = await client.request({ method: 'GET', path });
    const spec = {
      holderIdentity: identity,
      leaseDurationSeconds: SILENT_MS / 1000,
      renewTime: microTime(client.timers.wallMs()),
    };
    const head = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    const metadata = { name: identity, namespace: 'kube-system', labels: { [LABEL]: 'true' } };
    const answer = found.ok
      ? await client.request({ method: 'PUT', path, body: { ...found.object, spec } })
      : await client.request({ method: 'POST', path: PATH, body: { ...head, metadata, spec } });
    if (!answer.ok) throw new Error(answer.status.message ?? 'the lease cannot be written');
  }

  async #look(): Promise<void> {
    const { client, identity } = this.#options;
    const query = `?labelSelector=${encodeURIComponent(`${LABEL}=true`)}`;
    const answer = await client.request({ method: 'GET', path: PATH + query });
    if (!answer.ok) throw new Error(answer.status.message ?? 'the leases cannot be read');
    const living = this.#living(listAt(answer.object, 'items') as JsonObject[]);
    const index = living.indexOf(identity);
    if (index < 0 || living.length > PARTS_MAX) return;
    const part = { index, count: living.length };
    const before = this.#part;
    this.#part = part;
    if (before !== null && (before.index !== index || before.count !== part.count))
      this.#options.onPart(part);
  }

  #living(leases: readonly JsonObject[]): string[] {
    const { timers } = this.#options.client;
    const nowMs = timers.nowMs();
    const wallMs = timers.wallMs();
    const names: string[] = [];
    for (const lease of leases) {
      const name = stringAt(lease, 'metadata', 'name');
      const renewTime = stringAt(lease, 'spec', 'renewTime');
      let seen = this.#seen.get(name);
      if (seen?.renewTime !== renewTime) {
        // one that we see first may be long dead: its own time is believed once
        const ageMs = wallMs - Date.parse(renewTime);
        const lastsMs = numberAt(lease, 'spec', 'leaseDurationSeconds') * 1000;
        const isOld = seen === undefined && ageMs > lastsMs;
        const sinceMs = isOld ? nowMs - SILENT_MS : nowMs;
        seen = { renewTime, sinceMs, looks: isOld ? SILENT_LOOKS : 0 };
        this.#seen.set(name, seen);
      } else seen.looks++;
      const silentMs = nowMs - seen.sinceMs;
      if (silentMs < SILENT_MS || seen.looks < SILENT_LOOKS) names.push(name);
      else if (silentMs >= FORGOTTEN_MS) this.#forget(lease);
    }
    return names.toSorted();
  }

  /** Any member may do it: the version says that it is still the lease that was seen. */
  #forget(lease: JsonObject): void {
    if (this.#part?.index !== 0) return;
    const name = stringAt(lease, 'metadata', 'name');
    this.#seen.delete(name);
    const preconditions = { resourceVersion: stringAt(lease, 'metadata', 'resourceVersion') };
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions };
    void this.#options.client.request({ method: 'DELETE', path: `${PATH}/${name}`, body });
  }
}
