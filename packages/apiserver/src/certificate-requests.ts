/**
 * CertificateSigningRequests: who asks is whoever the request came from, and what was asked for,
 * approved and signed changes by its own subresource only.
 */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { isObject } from '@megaplane/machinery/json-value';
import { formatTime } from '@megaplane/machinery/times';
import { defineBehaviour, type RuleContext } from './behaviour.ts';

/** Registers them. */
export function defineCertificateRequests(): void {
  defineBehaviour('certificatesigningrequests.certificates.k8s.io', {
    prepareCreate: nameAsker,
    prepareUpdate: (next, previous) => {
      next['spec'] = previous['spec'];
    },
    prepareStatus: (next, previous, context) => {
      // Approval is given and taken back elsewhere.
      setConditions(next, previous, ['Approved', 'Denied'], context);
    },
    prepareParts: {
      approval: (next, previous, context) => {
        next['spec'] = previous['spec'];
        const status = objectAt(next, 'status') ?? {};
        const { conditions: _, ...kept } = objectAt(previous, 'status') ?? {};
        const conditions = [...listAt(status, 'conditions')];
        next['status'] = conditions.length === 0 ? kept : { ...kept, conditions };
        setConditions(next, previous, ['Failed'], context);
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
  for (const [key, values] of Object.entries(extra)) more[key] = [...values];
  if (Object.keys(more).length > 0) spec['extra'] = more;
  object['spec'] = spec;
  object['status'] = {};
}

/** Conditions with their times; of the `kept` types those that were there stay, and no others. */
function setConditions(
  next: JsonObject,
  previous: JsonObject,
  kept: readonly string[],
  { world }: RuleContext,
): void {
  const before = listAt(previous, 'status', 'conditions').filter(isObject);
  const isKept = (one: JsonObject): boolean => kept.includes(stringAt(one, 'type'));
  const sent = listAt(next, 'status', 'conditions').filter(isObject);
  const rest = sent.filter((one) => !isKept(one));
  const all: JsonValue[] = [...before.filter(isKept), ...rest.map((one) => stamped(one, before))];
  if (all.length === 0 && sent.length === 0) return;
  next['status'] = { ...objectAt(next, 'status'), conditions: all };

  function stamped(one: JsonObject, others: readonly JsonObject[]): JsonObject {
    const now = formatTime(Math.floor(world.edge.nowMs() / 1000));
    const same = others.find(
      (other) => other['type'] === one['type'] && other['status'] === one['status'],
    );
    const since = stringAt(one, 'lastTransitionTime') || stringAt(same, 'lastTransitionTime');
    return {
      ...one,
      lastUpdateTime: stringAt(one, 'lastUpdateTime') || now,
      lastTransitionTime: since || now,
    };
  }
}
