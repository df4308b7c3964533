/**
 * The world as it is simulated now. When a Stage of the server changes, or our part of the nodes
 * does, the next world takes the place of the one before it: it reads nodes and pods anew, which
 * takes seconds, or minutes where there are a million. Until then the one before keeps the leases
 * of those nodes that are still ours.
 *
 * Nodes that are no more ours are left as soon as that is known, and those that are new to us taken
 * when all the others must know of it, too: two simulators do not renew one lease.
 */
import { createEventRecorder } from '@megaplane/client/event-recorder';
import { Membership, parsePart, SPREAD_MS, WHOLE, type Part } from '../client/membership.ts';
import { PORT_KINDS } from '../server/port-config.ts';
import { SimulatedCluster, type ClusterParts } from './simulated-cluster.ts';
import { KwokObjects, type KwokObject } from '../stages/kwok-objects.ts';
import { STAGE_API_VERSION } from '../stages/stage-file.ts';
import { FileError, readDocuments } from '../yaml/yaml-fields.ts';

/** Changes within this time lead to one new world. */
export const SETTLE_MS = 1000;

export type ClustersParts = Omit<
  ClusterParts,
  'part' | 'stages' | 'isFirst' | 'takeOver' | 'onRefused'
>;

export class Clusters {
  readonly #parts: ClustersParts;
  readonly #objects: KwokObjects;
  readonly #membership: Membership | null;
  #part: Part = WHOLE;
  #present: SimulatedCluster | null = null;
  /** Keeps leases while the present one reads what there is. */
  #before: SimulatedCluster | null = null;
  #isSettling = false;
  #isStopped = false;

  constructor(parts: ClustersParts) {
    this.#parts = parts;
    const { client, options } = parts;
    const onTrouble = (message: string): void => options.log('warn', message);
    this.#objects = new KwokObjects({
      client,
      kinds: options.enableCrds,
      onChange: (kind, key, object) => {
        if (kind === 'Stage') this.#renewSoon(SETTLE_MS);
        else this.#takeDocument(kind, key, object);
      },
      onTrouble,
    });
    const isAuto = options.shard === 'auto';
    const fixed = isAuto || options.shard === '' ? WHOLE : parsePart(options.shard);
    if (fixed instanceof Error) throw fixed;
    this.#part = fixed;
    this.#membership = isAuto
      ? new Membership({
          client,
          identity: parts.identity,
          onPart: (part) => {
            this.#part = part;
            this.#tellPart();
            this.#present?.narrow(part);
            this.#before?.narrow(part);
            this.#renewSoon(SPREAD_MS);
          },
          onTrouble,
        })
      : null;
  }

  /** Call it often. Who was silent so long that others have taken over does nothing. */
  tick(): void {
    if (this.#membership?.isSure === false) return;
    this.#before?.tick();
    this.#present?.tick();
  }

  get present(): SimulatedCluster | null {
    return this.#present;
  }

  /** Resolves when the first world plays; rejects with an Error that says what is wrong. */
  async start(): Promise<void> {
    if (this.#membership !== null) this.#part = await this.#membership.start();
    this.#tellPart();
    const { timers } = this.#parts.client;
    const isShared = this.#membership !== null && this.#part.count > 1;
    if (isShared) await new Promise<void>((resolve) => timers.after(SPREAD_MS, resolve));
    await this.#objects.start();
    for (const object of this.#objects.others()) {
      this.#takeDocument(object.kind, object.key, object);
    }
    await this.#renew();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#objects.stop();
    this.#present?.stop();
    this.#before?.stop();
    await this.#membership?.stop();
  }

  #tellPart(): void {
    const { index, count } = this.#part;
    if (count > 1) this.#parts.options.log('info', `shard ${index} of ${count}`);
  }

  async #renew(): Promise<void> {
    const last = this.#present;
    if (last?.isRenewing === true) {
      last.retire();
      this.#before?.stop();
      this.#before = last;
    } else last?.stop();
    this.#parts.metrics.forgetObjects();
    const world = new SimulatedCluster({
      ...this.#parts,
      part: this.#part,
      isFirst: last === null,
      takeOver: () => {
        const before = this.#before;
        this.#before = null;
        return before;
      },
      stages: this.#objects.of('Stage'),
      onRefused: (stage, why) => this.#refused('Stage', stage, why),
    });
    this.#present = world;
    await world.start();
  }

  #renewSoon(pauseMs: number): void {
    // the first world is made of all that is known by then
    if (this.#isSettling || this.#present === null) return;
    this.#isSettling = true;
    const { client, options } = this.#parts;
    client.timers.after(pauseMs, () => {
      this.#isSettling = false;
      if (this.#isStopped) return;
      options.log('info', 'stages or shards have changed: nodes and pods are read anew');
      void this.#renew().catch((error: Error) => options.log('error', error.message));
    });
  }

  #takeDocument(kind: string, key: string, object: KwokObject | null): void {
    if (!Object.hasOwn(PORT_KINDS, kind)) return;
    const own = `object ${key}`;
    this.#parts.config.remove(kind, own);
    if (object === null) return;
    try {
      for (const document of readDocuments(`${kind} ${key}`, object.text)) {
        this.#parts.config.put(kind, own, document);
      }
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      this.#refused(kind, key, error.message);
    }
  }

  /** The log says it, and an event about the object. */
  #refused(kind: string, key: string, why: string): void {
    const { client, options } = this.#parts;
    options.log('warn', `${kind} ${key} is refused: ${why}`);
    const slash = key.indexOf('/');
    const subject = {
      kind,
      apiVersion: STAGE_API_VERSION,
      namespace: slash < 0 ? '' : key.slice(0, slash),
      name: key.slice(slash + 1),
    };
    const recorder = createEventRecorder({ client, component: 'megaplane-nodes' });
    recorder.event(subject, 'Warning', 'Refused', why);
  }
}
