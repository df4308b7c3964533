/**
 * The life of a cluster of constant size: what is made in one cycle is deleted in the next, and
 * each name is new. Nothing that a cluster keeps for its objects may outlive it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CONTENT } from '@megaplane/client/client';
import type { KubeClient } from '@megaplane/client/kube-client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { HOME, KINDS, type CountedKind } from './kinds.ts';
import { Watchers } from './watchers.ts';

const DEPLOYMENTS = 20;
const REPLICAS = 5;
/** Sets that each keeps of the past: as many are there after three rounds of rollouts. */
const REVISIONS = 2;
const WATCHES = 40;
const WATCHES_A_CYCLE = 8;
const EVENTS_A_CYCLE = 20;
/** All events that are there are deleted, so that what controllers tell is of constant size too. */
const EVENTS_EVERY = 4;
const SEEN_MS = 20;
/** Kinds of which each cycle makes one and deletes the one before. */
const COME_AND_GO = ['definitions', 'jobs', 'cronjobs', 'services', 'statefulsets'] as const;

export class Life {
  readonly #client: KubeClient;
  readonly watchers: Watchers;
  #cycle = 0;

  constructor(client: KubeClient) {
    this.#client = client;
    this.watchers = new Watchers(client);
  }

  /** What stays: Deployments, whose pods run, and a number of watches. */
  async begin(): Promise<void> {
    await this.#must('POST', HOME.path, HOME.body);
    this.watchers.turnOver(WATCHES, WATCHES);
    for (let index = 0; index < DEPLOYMENTS; index++) {
      const [made] = kindOf('deployments').made(index);
      if (made === undefined) continue;
      const spec = {
        ...(made.body['spec'] as JsonObject),
        replicas: REPLICAS,
        revisionHistoryLimit: REVISIONS,
      };
      await this.#must('POST', made.path, { ...made.body, spec });
    }
  }

  /** One cycle: each part at the same time as the others. */
  async cycle(): Promise<void> {
    const cycle = this.#cycle++;
    this.watchers.turnOver(WATCHES_A_CYCLE, WATCHES);
    const parts = COME_AND_GO.map((name) => this.#comeAndGo(kindOf(name), cycle));
    await Promise.all([...parts, this.#rollOut(cycle), this.#namespace(cycle), this.#tell(cycle)]);
  }

  /** Another image and another request each time: a template that the scheduler has not seen. */
  async #rollOut(cycle: number): Promise<void> {
    const [made] = kindOf('deployments').made(cycle % DEPLOYMENTS);
    const resources = { requests: { cpu: `${1 + (cycle % 97)}m` } };
    const container = { name: 'c', image: `registry.example.com/app:${cycle}`, resources };
    const body = { spec: { template: { spec: { containers: [container] } } } };
    await this.#must('PATCH', `${made?.path}/${made?.name}`, body);
  }

  /** A namespace with things in it; the one of the cycle before goes with its things. */
  async #namespace(cycle: number): Promise<void> {
    const [made] = kindOf('namespaces').made(cycle);
    if (made !== undefined) await this.#must('POST', made.path, made.body);
    for (const name of ['configmaps', 'secrets', 'deployments']) {
      const [inside] = kindOf(name).made(cycle);
      const path = inside?.path.replace(`/${HOME.name}/`, `/${made?.name}/`) ?? '';
      if (inside !== undefined) await this.#must('POST', path, inside.body);
    }
    const [last] = cycle > 0 ? kindOf('namespaces').made(cycle - 1) : [];
    if (last !== undefined) await this.#must('DELETE', `${last.path}/${last.name}`);
  }

  async #tell(cycle: number): Promise<void> {
    for (let index = 0; index < EVENTS_A_CYCLE; index++) {
      const [made] = kindOf('events').made(cycle * EVENTS_A_CYCLE + index);
      if (made !== undefined) await this.#must('POST', made.path, made.body);
    }
    if (cycle % EVENTS_EVERY !== 0) return;
    for (const namespace of [HOME.name, 'default']) {
      await this.#must('DELETE', `/api/v1/namespaces/${namespace}/events`);
    }
  }

  async #comeAndGo(kind: CountedKind, cycle: number): Promise<void> {
    for (const { path, body } of kind.made(cycle)) await this.#must('POST', path, body);
    const [last] = cycle > 0 ? kind.made(cycle - 1) : [];
    const options = { propagationPolicy: 'Background' };
    if (last !== undefined) await this.#must('DELETE', `${last.path}/${last.name}`, options);
  }

  async #must(method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: JsonObject): Promise<void> {
    for (;;) {
      const answer = await this.#client.request({
        ...{ method, path },
        ...(body === undefined ? {} : { body }),
        ...(method === 'PATCH' ? { contentType: CONTENT.strategicPatch } : {}),
      });
      if (answer.ok || answer.code === 409) return;
      if (method === 'DELETE' && answer.code === 404) return;
      // a kind is served some milliseconds after its definition
      const comes = method === 'POST' && answer.code === 404;
      if (!comes) throw new Error(`${method} ${path}: ${answer.code} ${answer.status.message}`);
      await sleep(SEEN_MS);
    }
  }
}

function kindOf(name: string): CountedKind {
  const found = KINDS.find((kind) => kind.name === name);
  if (found === undefined) throw new Error(`no kind ${name}`);
  return found;
}
