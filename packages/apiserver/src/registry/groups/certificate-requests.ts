/**
 * CertificateSigningRequests: who asks is whoever the request came from, and what was asked for,
 * approved and signed changes by its own subresource only.
 */
import { putMember } from '@megaplane/base/members';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { formatTime } from '@megaplane/machinery/times';
import { defineBehaviour, type RuleContext } from '../rest/behaviour.ts';

/** Registers them. */
export function defineCertificateRequests(): void {
  defineBehaviour('certificatesigningrequests.certificates.k8s.io', {
    prepareCreate: nameAsker,
    prepareUpdate: (next, previous) => {
      next['spec'] = previous['spec'];
    },
    prepareStatus: (next, previous, context) => {
      keepConditions(next, previous, ['Approved', 'Denied']);
      stampConditions(next, previous, context);
    },
    prepareParts: {
      approval: (next, previous, context) => {
        next['spec'] = previous['spec'];
        const status = objectAt(next, 'status') ?? {};
        const { conditions: _, ...kept } = objectAt(previous, 'status') ?? {};
        const conditions = [...listAt(status, 'conditions')];
        next['status'] = conditions.length === 0 ? kept : { ...kept, conditions };
        stampConditions(next, previous, context);
      },
    },
  });
}

function nameAsker(object: JsonObject, { call }: RuleContext): void {
  const { user, uid, groups, extra } = call.identity;
  const spec: JsonObject = { ...objectAt(object, 'spec'), username: user };
  for (const field of ['uid', 'groups', 'extra']) delete spec[field];
  if (uid !== '') spec['uid'] = uid;
  if (groups.length > 0) spec['groups'] = [...groups];
  const more: JsonObject = {};
  for (const [key, values] of Object.entries(extra)) putMember(more, key, [...values]);
  if (Object.keys(more).length > 0) spec['extra'] = more;
  object['spec'] = spec;
  object['status'] = {};
}

/**
 * Conditions of these types stay as they were, where as many were sent as there are; where one came
 * or went, validation says so.
 */
function keepConditions(next: JsonObject, previous: JsonObject, types: readonly string[]): void {
  const conditions = [...listAt(next, 'status', 'conditions')];
  for (const type of types) {
    const before = listAt(previous, 'status', 'conditions').filter(
      (one) => stringAt(one, 'type') === type,
    );
    const places = [...conditions.keys()].filter((at) => stringAt(conditions[at], 'type') === type);
    if (places.length !== before.length) continue;
    for (const [index, at] of places.entries()) conditions[at] = before[index] ?? null;
  }
  if (conditions.length === 0) return;
  next['status'] = { ...objectAt(next, 'status'), conditions };
}

/** Conditions with their times. */
function stampConditions(next: JsonObject, previous: JsonObject, { world }: RuleContext): void {
  const before = listAt(previous, 'status', 'conditions').filter(isObject);
  const sent = listAt(next, 'status', 'conditions').filter(isObject);
  if (sent.length === 0) return;
  const now = formatTime(Math.floor(world.edge.nowMs() / 1000));
  const conditions = sent.map((one) => {
    const same = before.find(
      (other) => other['type'] === one['type'] && other['status'] === one['status'],
    );
    const since = stringAt(one, 'lastTransitionTime') || stringAt(same, 'lastTransitionTime');
    return {
      ...one,
      lastUpdateTime: stringAt(one, 'lastUpdateTime') || now,
      lastTransitionTime: since || now,
    };
  });
  next['status'] = { ...objectAt(next, 'status'), conditions };
}
