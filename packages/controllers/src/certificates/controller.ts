/** CertificateSigningRequests: approved for kubelets, signed by the authority, cleaned. */
import type { Random } from '@megaplane/base/random';
import type { Client } from '@megaplane/client/client';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { listAt, numberAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { parseTime } from '@megaplane/machinery/times';
import { X509Certificate } from 'node:crypto';
import type { ControllerContext } from '../framework/controller-context.ts';
import { ObjectCache } from '../framework/object-cache.ts';
import { Workers, type WorkResult } from '../framework/workers.ts';
import { parseRequest, type CertificateRequest } from '@megaplane/machinery/certificate-request';
import { judgeServing } from './serving-approval.ts';
import { clientObjection, KUBELET_CLIENT, KUBELET_SERVING, objection } from './signers.ts';
import { isOver, lifeMs, signRequest, type Authority } from './signing.ts';

const WORKERS = 5;
/** As in upstream's certificate_controller.go. */
const RETRY = { minMs: 200, maxMs: 1_000_000 };
const PATH = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
/** How often old requests are looked for, and how long they are kept. */
const CLEAN_MS = 3_600_000;
const DECIDED_MS_MAX = 3_600_000;
/** Of what nobody decided, and of what was approved and nobody signed. */
const PENDING_MS_MAX = 24 * 3_600_000;

export interface CertificateOptions extends ControllerContext {
  readonly now: () => string;
}

/** Works on each request that is new or changed. */
class RequestController {
  protected readonly requests: ObjectCache;
  readonly #workers: Workers<string>;

  constructor(
    { client, informers, onError }: CertificateOptions,
    queue: string,
    work: (name: string, object: JsonObject) => Promise<WorkResult>,
  ) {
    this.#workers = new Workers<string>(
      client.timers,
      WORKERS,
      async (name) => {
        const object = this.requests.get(name);
        return object === undefined ? 'done' : work(name, object);
      },
      onError,
      informers.queues.queue(queue),
      RETRY,
    );
    this.requests = new ObjectCache(informers, PATH, (name, after) => {
      if (after !== undefined) this.#workers.add(name);
    });
  }

  start(): void {
    this.#workers.start();
  }

  stop(): void {
    this.#workers.stop();
  }
}

function conditionOf(object: JsonObject, type: string): JsonObject | undefined {
  return listAt(object, 'status', 'conditions')
    .filter(isObject)
    .find((one) => one['type'] === type && (one['status'] ?? 'True') === 'True');
}

function requestOf(object: JsonObject): CertificateRequest | string {
  return parseRequest(
    Buffer.from(stringAt(object, 'spec', 'request'), 'base64').toString('latin1'),
  );
}

function usagesOf(object: JsonObject): string[] {
  return listAt(object, 'spec', 'usages').filter((one) => typeof one === 'string');
}

async function put(
  client: Client,
  name: string,
  subresource: 'status' | 'approval',
  object: JsonObject,
  change: JsonObject,
): Promise<WorkResult> {
  const status = { ...objectAt(object, 'status'), ...change };
  const kind = 'CertificateSigningRequest';
  const body = { ...object, apiVersion: 'certificates.k8s.io/v1', kind, status };
  const path = `${PATH}/${name}/${subresource}`;
  const answer = await client.request({ method: 'PUT', path, body });
  return answer.ok || answer.code === 404 ? 'done' : 'retry';
}

/** Signs what was approved, and says why where it does not. */
export class SigningController extends RequestController {
  constructor(
    options: CertificateOptions & {
      /** By the name of the signer; requests for others stay. */
      readonly authorities: ReadonlyMap<string, Authority>;
      readonly usualLifeMs: number;
      readonly random: Random;
    },
  ) {
    super(options, 'certificate', async (name, object) => {
      const signer = stringAt(object, 'spec', 'signerName');
      const isSigned = stringAt(object, 'status', 'certificate') !== '';
      const isApproved = conditionOf(object, 'Approved') !== undefined;
      const isRefused = ['Denied', 'Failed'].some((one) => conditionOf(object, one) !== undefined);
      const authority = options.authorities.get(signer);
      if (isSigned || !isApproved || isRefused || authority === undefined) return 'done';
      const request = requestOf(object);
      const usages = usagesOf(object);
      // As upstream: what nobody can read fails in no condition, and is tried again.
      if (typeof request === 'string') return 'retry';
      const why = objection(signer, request, usages);
      if (why !== '') {
        return put(options.client, name, 'status', object, {
          conditions: [
            ...listAt(object, 'status', 'conditions'),
            {
              type: 'Failed',
              status: 'True',
              reason: 'SignerValidationFailure',
              message: why,
              lastUpdateTime: options.now(),
            },
          ],
        });
      }
      const nowMs = options.client.timers.wallMs();
      if (isOver(authority, nowMs)) return 'retry';
      const pem = signRequest(request, authority, {
        usages,
        lifeMs: lifeMs(numberAt(object, 'spec', 'expirationSeconds'), options.usualLifeMs),
        nowMs,
        random: () => options.random.below(256),
      });
      const certificate = Buffer.from(pem).toString('base64');
      return put(options.client, name, 'status', object, { certificate });
    });
  }
}

/** Of a kubelet's own client certificate, and of one for a node that somebody else may ask for. */
const APPROVALS = [
  {
    subresource: 'selfnodeclient',
    isOwn: true,
    message: 'Auto approving self kubelet client certificate after SubjectAccessReview.',
  },
  {
    subresource: 'nodeclient',
    isOwn: false,
    message: 'Auto approving kubelet client certificate after SubjectAccessReview.',
  },
] as const;

/** Approves kubelets' client certificates for those who may ask for them. */
export class ApprovingController extends RequestController {
  constructor(options: CertificateOptions & { readonly approvesServing: boolean }) {
    const { client } = options;
    super(options, 'certificate', async (name, object) => {
      const isDecided = ['Approved', 'Denied'].some((one) => conditionOf(object, one));
      if (isDecided || stringAt(object, 'status', 'certificate') !== '') return 'done';
      const signer = stringAt(object, 'spec', 'signerName');
      if (signer === KUBELET_SERVING && options.approvesServing) {
        const verdict = await judgeServing(client, object, requestOf(object), usagesOf(object));
        if (verdict !== 'approved') return verdict === 'later' ? 'retry' : 'done';
        return approve(
          client,
          name,
          object,
          'Auto approving kubelet serving certificate of the node.',
        );
      }
      if (signer !== KUBELET_CLIENT) return 'done';
      const request = requestOf(object);
      if (typeof request === 'string' || clientObjection(request, usagesOf(object)) !== '') {
        return 'done';
      }
      for (const { subresource, isOwn, message } of APPROVALS) {
        if (isOwn && stringAt(object, 'spec', 'username') !== request.commonName) continue;
        const verdict = await isAllowed(client, object, subresource);
        if (verdict === undefined) return 'retry';
        if (!verdict) continue;
        return approve(client, name, object, message);
      }
      // Whoever asks may be given the right later.
      return 'retry';
    });
  }
}

function approve(
  client: Client,
  name: string,
  object: JsonObject,
  message: string,
): Promise<WorkResult> {
  const approval = { type: 'Approved', status: 'True', reason: 'AutoApproved', message };
  const conditions = [...listAt(object, 'status', 'conditions'), approval];
  return put(client, name, 'approval', object, { conditions });
}

/** Whether who asks may have such a certificate; undefined where the server does not say. */
async function isAllowed(
  client: Client,
  { spec }: JsonObject,
  subresource: string,
): Promise<boolean | undefined> {
  const asker = isObject(spec) ? spec : {};
  const attributes = {
    group: 'certificates.k8s.io',
    resource: 'certificatesigningrequests',
    verb: 'create',
    version: '*',
    subresource,
  };
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: stringAt(asker, 'username'),
      uid: stringAt(asker, 'uid'),
      groups: [...listAt(asker, 'groups')],
      extra: objectAt(asker, 'extra') ?? {},
      resourceAttributes: attributes,
    },
  };
  const answer = await client.request({ method: 'POST', path: REVIEWS, body });
  if (!answer.ok) return undefined;
  return objectAt(answer.object, 'status')?.['allowed'] === true;
}

/** Deletes requests that came to an end an hour ago, or that nobody saw to for a day. */
export class CleanerController {
  readonly #options: CertificateOptions;
  readonly #requests: ObjectCache;
  #cancel: () => void = () => {};

  constructor(options: CertificateOptions) {
    this.#options = options;
    this.#requests = new ObjectCache(options.informers, PATH, () => {});
  }

  start(): void {
    void this.#clean().catch(this.#options.onError);
    this.#cancel = this.#options.client.timers.after(CLEAN_MS, () => this.start());
  }

  stop(): void {
    this.#cancel();
  }

  async #clean(): Promise<void> {
    const { client } = this.#options;
    for (const name of [...this.#requests.keys()]) {
      const object = this.#requests.get(name);
      if (object === undefined || !isOld(object, client.timers.wallMs())) continue;
      const uid = stringAt(object, 'metadata', 'uid');
      const body = { preconditions: { uid } };
      // What is refused now is tried at the next look.
      await client.request({ method: 'DELETE', path: `${PATH}/${name}`, body });
    }
  }
}

function isOld(object: JsonObject, nowMs: number): boolean {
  const isPast = (text: string, ageMs: number): boolean => {
    const time = parseTime(text);
    return time !== undefined && nowMs - time.seconds * 1000 > ageMs;
  };
  const conditions = listAt(object, 'status', 'conditions');
  if (conditions.length === 0) {
    return isPast(stringAt(object, 'metadata', 'creationTimestamp'), PENDING_MS_MAX);
  }
  const isDecided = (type: string, ageMs: number): boolean =>
    isPast(stringAt(conditionOf(object, type), 'lastUpdateTime'), ageMs);
  if (['Denied', 'Failed'].some((type) => isDecided(type, DECIDED_MS_MAX))) return true;
  const certificate = stringAt(object, 'status', 'certificate');
  if (isDecided('Approved', certificate === '' ? PENDING_MS_MAX : DECIDED_MS_MAX)) return true;
  if (certificate === '' || conditionOf(object, 'Approved') === undefined) return false;
  try {
    return Date.parse(new X509Certificate(Buffer.from(certificate, 'base64')).validTo) < nowMs;
  } catch {
    // Not a certificate that we know how to read: its condition's age decides.
    return false;
  }
}
