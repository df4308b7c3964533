/**
 * Keeps ServiceCIDRs while addresses of services would be left without one: a finalizer, and the
 * condition Ready that tells whether addresses are given from it.
 */
import { CONTENT, type Client } from '@megaplane/client/client';
import { readPages } from '@megaplane/client/pager';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { listAt, stringAt } from '@megaplane/machinery/json';
import { formatTime, parseTime } from '@megaplane/machinery/times';
import type { Announce } from '../framework/event-recorder.ts';
import { findCondition } from '../framework/conditions.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import type { ControllerContext } from '../framework/controller-context.ts';
import type { SharedInformers } from '../framework/shared-informers.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { holdsAddress, isCovered, overlap, type Networks } from './service-networks.ts';

const WORKERS = 5;
const MANAGER = 'service-cidr-controller';
const FINALIZER = 'networking.k8s.io/service-cidr-finalizer';
const NETWORKING = '/apis/networking.k8s.io/v1';
const CIDRS = `${NETWORKING}/servicecidrs`;
const ADDRESSES = `${NETWORKING}/ipaddresses`;
const MANAGED = 'ipaddress.kubernetes.io/managed-by=ipallocator.k8s.io';
/** Until API servers know that nothing is to be given from it any more. */
const GRACE_MS = 10_000;
const READY = ['True', '', 'Kubernetes Service CIDR is ready'] as const;
const ENDING = [
  'False',
  'Terminating',
  'There are still IPAddresses referencing the ServiceCIDR, ' +
    'please remove them or create a new ServiceCIDR',
] as const;

export interface ServiceCidrsOptions extends ControllerContext {
  readonly announce: Announce;
}

export class ServiceCidrsController {
  readonly #client: Client;
  readonly #announce: Announce;
  readonly #informers: SharedInformers;
  readonly #workers: Workers<string>;
  readonly #cidrs: ObjectCache;
  /** Addresses are watched from the first one on that is held up by them. */
  #hearsAddresses = false;

  constructor({ client, informers, announce, onError }: ServiceCidrsOptions) {
    this.#client = client;
    this.#announce = announce;
    this.#informers = informers;
    const queue = informers.queues.queue('ipaddresses');
    this.#workers = new Workers(client.timers, WORKERS, (key) => this.#work(key), onError, queue);
    this.#cidrs = new ObjectCache(informers, CIDRS, (key, after, before) => {
      this.#workers.add(key);
      if (before !== undefined || after === undefined) return;
      // A new one may let another go.
      for (const [name, networks] of this.#others(key)) {
        if (overlap(networksOf(after), networks)) this.#workers.add(name);
      }
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }

  #others(but: string): [string, Networks][] {
    return [...this.#cidrs.keys()]
      .filter((name) => name !== but)
      .map((name) => [name, networksOf(this.#cidrs.get(name))]);
  }

  async #work(name: string): Promise<WorkResult> {
    const cidr = this.#cidrs.get(name);
    if (cidr === undefined) return 'done';
    const deletion = parseTime(stringAt(cidr, 'metadata', 'deletionTimestamp'));
    const isHeld = listAt(cidr, 'metadata', 'finalizers').includes(FINALIZER);
    if (deletion === undefined) {
      if (!isHeld && !(await this.#finalize(name, { finalizers: [FINALIZER] }))) return 'retry';
      if (await this.#tell(cidr, READY)) return 'done';
      const text = 'The ServiceCIDR Status can not be set to Ready=True';
      const uid = stringAt(cidr, 'metadata', 'uid');
      this.#announce('ServiceCIDR', '', name, 'Warning', 'KubernetesServiceCIDRError', text, uid);
      return 'retry';
    }
    if (!isHeld) return 'done';
    const isNeeded = await this.#isNeeded(name, networksOf(cidr));
    if (isNeeded === undefined) return 'retry';
    if (isNeeded) return (await this.#tell(cidr, ENDING)) ? 'done' : 'retry';
    const waitMs = deletion.seconds * 1000 + GRACE_MS - this.#client.timers.wallMs();
    if (waitMs > 0) return { againMs: waitMs };
    const without = { '$deleteFromPrimitiveList/finalizers': [FINALIZER] };
    return (await this.#finalize(name, without)) ? 'done' : 'retry';
  }

  /** Whether an address lies in no other network; undefined where the server could not tell. */
  async #isNeeded(name: string, networks: Networks): Promise<boolean | undefined> {
    const others = this.#others(name).map(([, of]) => of);
    if (isCovered(networks, others)) return false;
    this.#hearAddresses();
    let isNeeded = false;
    const result = await readPages({
      client: this.#client,
      path: `${ADDRESSES}?labelSelector=${encodeURIComponent(MANAGED)}`,
      mustBeConsistent: true,
      onItem: (bytes, start, end) => {
        if (isNeeded) return;
        const text = Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString();
        const address = stringAt(parseJson(text), 'metadata', 'name');
        const isOurs = holdsAddress(networks, address);
        isNeeded = isOurs && !others.some((of) => holdsAddress(of, address));
      },
    });
    return result.ok ? isNeeded : undefined;
  }

  #hearAddresses(): void {
    if (this.#hearsAddresses) return;
    this.#hearsAddresses = true;
    const addresses = this.#informers.subscribe(
      { path: ADDRESSES },
      {
        onUpsert: () => {},
        onDelete: (row) => this.#look(addresses.keyOf(row)),
        // What went before the watch began was not heard of.
        onSynced: () => this.#look(),
      },
    );
    this.#informers.start();
  }

  /** Looks again at those that are being deleted, or those of them that hold the address. */
  #look(address?: string): void {
    for (const name of this.#cidrs.keys()) {
      const cidr = this.#cidrs.get(name);
      const isGoing = stringAt(cidr, 'metadata', 'deletionTimestamp') !== '';
      const isMeant = address === undefined || holdsAddress(networksOf(cidr), address);
      if (isGoing && isMeant) this.#workers.add(name);
    }
  }

  async #finalize(name: string, metadata: JsonObject): Promise<boolean> {
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `${CIDRS}/${name}`,
      contentType: CONTENT.strategicPatch,
      body: { metadata },
    });
    return answer.ok || answer.code === 404;
  }

  async #tell(cidr: JsonObject, wanted: typeof READY | typeof ENDING): Promise<boolean> {
    const [status, reason, message] = wanted;
    const known = findCondition(listAt(cidr, 'status', 'conditions'), 'Ready');
    const fields = ['status', 'reason', 'message'].map((field) => stringAt(known, field));
    if (known !== undefined && fields.every((text, at) => text === wanted[at])) return true;
    const lastTransitionTime = formatTime(Math.floor(this.#client.timers.wallMs() / 1000));
    const name = stringAt(cidr, 'metadata', 'name');
    const conditions = [{ type: 'Ready', status, reason, message, lastTransitionTime }];
    const answer = await this.#client.request({
      method: 'PATCH',
      path: `${CIDRS}/${name}/status?fieldManager=${MANAGER}&force=true`,
      contentType: CONTENT.applyPatch,
      body: {
        apiVersion: 'networking.k8s.io/v1',
        kind: 'ServiceCIDR',
        metadata: { name },
        status: { conditions },
      },
    });
    return answer.ok || answer.code === 404;
  }
}

function networksOf(cidr: JsonObject | undefined): Networks {
  return listAt(cidr, 'spec', 'cidrs').filter((one) => typeof one === 'string');
}
