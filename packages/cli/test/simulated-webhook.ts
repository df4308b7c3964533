/** A webhook that must agree to what controllers make, and its moods. */
import { unreachable } from '@megaplane/base/assert';
import type { WebhookCaller, WebhookResponse } from '@megaplane/apiserver/admission/webhook-call';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { objectAt, stringAt } from '@megaplane/machinery/json';
import type { SimulatedTimers } from './simulated-timers.ts';

const SLOW_MS = 3_000;

export type Mood = 'agrees' | 'refuses' | 'fails' | 'is slow' | 'is silent';

export class SimulatedWebhook implements WebhookCaller {
  mood: Mood = 'agrees';
  readonly #timers: SimulatedTimers;

  constructor(timers: SimulatedTimers) {
    this.#timers = timers;
  }

  call(
    _target: unknown,
    body: Buffer,
    timeoutMs: number,
    then: (response: WebhookResponse) => void,
  ): void {
    const after = (delayMs: number, response: WebhookResponse): void =>
      void this.#timers.after(delayMs, () => then(response));
    switch (this.mood) {
      case 'agrees':
        return after(0, answer(body, true));
      case 'refuses':
        return after(0, answer(body, false));
      case 'fails':
        return after(0, { ok: false, why: 'connect: connection refused' });
      case 'is slow':
        return after(SLOW_MS, answer(body, true));
      case 'is silent':
        return after(timeoutMs, { ok: false, why: 'context deadline exceeded' });
      default:
        return unreachable(this.mood);
    }
  }
}

function answer(body: Buffer, allowed: boolean): WebhookResponse {
  const review = JSON.parse(body.toString('utf8')) as JsonObject;
  const uid = stringAt(objectAt(review, 'request'), 'uid');
  const { apiVersion, kind } = review;
  const text = JSON.stringify({ apiVersion, kind, response: { uid, allowed } });
  return { ok: true, status: 200, contentType: 'application/json', body: Buffer.from(text) };
}

/** What controllers alone make: pods and sets of pods, slices, revisions. */
export const WEBHOOK: JsonObject = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'must-agree' },
  webhooks: [
    {
      name: 'agree.example.com',
      clientConfig: { url: 'https://agree.example.com/' },
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      failurePolicy: 'Fail',
      timeoutSeconds: 5,
      rules: [
        { operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['pods'] },
        {
          operations: ['CREATE', 'UPDATE'],
          apiGroups: ['apps'],
          apiVersions: ['v1'],
          resources: ['replicasets', 'controllerrevisions'],
        },
        {
          operations: ['*'],
          apiGroups: ['discovery.k8s.io'],
          apiVersions: ['v1'],
          resources: ['endpointslices'],
        },
      ],
    },
  ],
};
