/** Webhooks and policies that asked for another version than the one that is written. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  define,
  DEFINITIONS,
  definitionOf,
  startRig,
  versionOf,
} from '../../testing/definitions.sim.ts';
import type { ExchangeModel } from '../../testing/exchange-model.sim.ts';
import type { WebhookCaller, WebhookResponse, WebhookTarget } from '../../webhook/webhook-call.ts';

interface Widget {
  readonly apiVersion: string;
  readonly spec: Readonly<Record<string, unknown>>;
}
interface Review {
  readonly request: {
    readonly uid: string;
    readonly desiredAPIVersion: string;
    readonly objects: readonly Widget[];
    readonly object: Widget;
    readonly oldObject: Widget | null;
  };
}

/** Converts `spec.size` of v1 into `spec.width` of v2 and back, and admits with a patch. */
class Hooks implements WebhookCaller {
  readonly seen: string[] = [];
  patch: readonly object[] = [];
  fault = '';

  call(target: WebhookTarget, body: Buffer, _: number, then: (r: WebhookResponse) => void): void {
    const { request } = JSON.parse(body.toString()) as Review;
    const isConversion = target.path.startsWith('/convert');
    const kind = isConversion
      ? { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview' }
      : { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' };
    const response = isConversion ? this.#convert(request) : this.#admit(target.path, request);
    const text = Buffer.from(JSON.stringify({ ...kind, response }));
    setImmediate(() => {
      then({ ok: true, status: 200, contentType: 'application/json', body: text });
    });
  }

  #convert({ uid, desiredAPIVersion, objects }: Review['request']): object {
    const convertedObjects = objects.map((object) => {
      const { size, width, ...rest } = object.spec;
      const name = desiredAPIVersion.endsWith('/v2') ? 'width' : 'size';
      return { ...object, apiVersion: desiredAPIVersion, spec: { ...rest, [name]: size ?? width } };
    });
    const status = this.fault === '' ? 'Success' : 'Failure';
    return { uid, result: { status, message: this.fault }, convertedObjects };
  }

  #admit(path: string, { uid, object, oldObject }: Review['request']): object {
    const shown = [oldObject, object].map(
      (one) => one && `${one.apiVersion} ${JSON.stringify(one.spec)}`,
    );
    this.seen.push(`${path.replace(/\?.*/, '')} ${shown.join(' -> ')}`);
    if (this.patch.length === 0 || !path.startsWith('/mutate')) return { uid, allowed: true };
    const patch = Buffer.from(JSON.stringify(this.patch)).toString('base64');
    return { uid, allowed: true, patchType: 'JSONPatch', patch };
  }
}

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const V2 = '/apis/example.com/v2/namespaces/default/widgets';

function started() {
  const webhooks = new Hooks();
  const rig = startRig({ webhooks });
  const clientConfig = { url: 'https://hooks/convert' };
  const webhook = { clientConfig, conversionReviewVersions: ['v1'] };
  const conversion = { conversion: { strategy: 'Webhook', webhook } };
  define(rig, definitionOf('widgets', [versionOf('v1'), versionOf('v2')], conversion));
  const rules = [
    {
      ...{ apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['widgets'] },
      operations: ['CREATE', 'UPDATE'],
    },
  ];
  for (const kind of ['mutating', 'validating']) {
    const hook = {
      ...{ name: `${kind}.hooks.example`, sideEffects: 'None', admissionReviewVersions: ['v1'] },
      ...{ clientConfig: { url: `https://hooks/${kind.replace(/ing$/, 'e')}` }, rules },
    };
    const configuration = { metadata: { name: kind }, webhooks: [hook] };
    const made = rig.ask('POST', `${ADMISSION}/${kind}webhookconfigurations`, configuration);
    assert.equal(made.status, 201, made.text);
  }
  const expression = "object.apiVersion == 'example.com/v1' && object.spec.size < 50";
  const policy = {
    metadata: { name: 'small' },
    spec: { matchConstraints: { resourceRules: rules }, validations: [{ expression }] },
  };
  rig.ask('POST', `${ADMISSION}/validatingadmissionpolicies`, policy);
  rig.ask('POST', `${ADMISSION}/validatingadmissionpolicybindings`, {
    metadata: { name: 'small' },
    spec: { policyName: 'small', validationActions: ['Deny'] },
  });
  const end = async (): Promise<void> => {
    rig.ask('DELETE', `${DEFINITIONS}/widgets.example.com`);
    rig.settle();
    await turn();
  };
  return { ...rig, webhooks, end };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

async function told(exchange: ExchangeModel): Promise<string> {
  for (let turns = 0; turns < 500 && exchange.status === 0; turns++) await turn();
  const { spec, message } = JSON.parse(exchange.text) as { spec?: object; message?: string };
  return `${exchange.status} ${message ?? JSON.stringify(spec)}`;
}

const widget = (spec: object): object => ({
  ...{ apiVersion: 'example.com/v2', kind: 'Widget', metadata: { name: 'w' }, spec },
});
const MERGE = { 'content-type': 'application/merge-patch+json' };

test('webhooks and policies see a write as the conversion webhook makes it', async () => {
  const { ask, webhooks, end } = started();
  webhooks.patch = [{ op: 'replace', path: '/spec/size', value: 7 }];
  assert.equal(await told(ask('POST', V2, widget({ width: 3 }))), '201 {"width":7}');
  assert.deepEqual(webhooks.seen.splice(0), [
    '/mutate  -> example.com/v1 {"size":3}',
    '/validate  -> example.com/v1 {"size":7}',
  ]);
  webhooks.patch = [];
  assert.equal(
    await told(ask('PATCH', `${V2}/w`, { spec: { width: 9 } }, MERGE)),
    '200 {"width":9}',
  );
  const [before, after] = ['example.com/v1 {"size":7}', 'example.com/v1 {"size":9}'];
  assert.deepEqual(webhooks.seen, [
    `/mutate ${before} -> ${after}`,
    `/validate ${before} -> ${after}`,
  ]);
  assert.match(
    await told(ask('PATCH', `${V2}/w`, { spec: { width: 60 } }, MERGE)),
    /^422 widgets.example.com "w" is forbidden: ValidatingAdmissionPolicy 'small' with binding/,
  );
  await end();
});

test('policies that are asked again change what is written, not a form of it', async () => {
  const { ask, webhooks, end } = started();
  const jsonPatch = {
    expression:
      '[JSONPatch{op: "add", path: "/spec/times", value: has(object.spec.times) ? 2 : 1}]',
  };
  const rule = { apiGroups: ['example.com'], apiVersions: ['v1'], resources: ['widgets'] };
  const spec = {
    matchConstraints: { resourceRules: [{ ...rule, operations: ['CREATE'] }] },
    ...{ reinvocationPolicy: 'IfNeeded', mutations: [{ patchType: 'JSONPatch', jsonPatch }] },
  };
  const policy = { metadata: { name: 'p' }, spec };
  ask('POST', `${ADMISSION}/mutatingadmissionpolicies`, policy);
  const binding = { metadata: { name: 'p' }, spec: { policyName: 'p' } };
  ask('POST', `${ADMISSION}/mutatingadmissionpolicybindings`, binding);
  webhooks.patch = [{ op: 'replace', path: '/spec/size', value: 7 }];
  const made = await told(ask('POST', V2, widget({ width: 3 })));
  assert.equal(made, '201 {"times":2,"width":7}');
  await end();
});

test('what cannot be converted is refused, and nobody is asked about it', async () => {
  const { ask, webhooks, end } = started();
  webhooks.fault = 'no way';
  const why = 'conversion webhook for example.com/v2, Kind=Widget failed: no way';
  const head = '500 Internal error occurred: Internal error occurred';
  assert.equal(await told(ask('POST', V2, widget({ width: 3 }))), `${head}: ${why}`);
  assert.deepEqual(webhooks.seen, []);
  await end();
});
