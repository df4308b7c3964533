/**
 * PodTolerationRestriction: a namespace, or the configuration for those that say nothing, gives its
 * pods tolerations and limits which ones they may have. Off unless enabled.
 */
import { ownMember } from '@megaplane/base/members';
import { checkTolerations } from '@megaplane/machinery/validation-pods';
import { aggregate, fieldErrorText } from '@megaplane/machinery/fielderrors';
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import { syntaxError } from '@megaplane/machinery/json-syntax';
import { parseJson } from '@megaplane/machinery/json-text';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { covers, mergedTolerations } from './merged-tolerations.ts';
import { qosClassOf } from '@megaplane/machinery/quota/pod-resources';
import { findType } from '@megaplane/machinery/schema';
import { fitObject } from '@megaplane/machinery/typed-json';
import { notFound, unclassified, type Status } from '@megaplane/machinery/status';
import type { Findings } from '@megaplane/machinery/validation-rules';
import { readNamespace } from '../../lister/stored-namespaces.ts';
import type { Admitted } from '../../registry/rest/admitted.ts';
import type { AdmissionPlugin } from '../admission-plugin.ts';

const DEFAULTS = 'scheduler.alpha.kubernetes.io/defaultTolerations';
const WHITELIST = 'scheduler.alpha.kubernetes.io/tolerationsWhitelist';
const VERSION = 'podtolerationrestriction.admission.k8s.io/v1alpha1';
const MEMORY_PRESSURE: JsonObject = {
  key: 'node.kubernetes.io/memory-pressure',
  operator: 'Exists',
  effect: 'NoSchedule',
};

type Tolerations = readonly JsonValue[];
type Read = { readonly tolerations: Tolerations | null } | { readonly refusal: Status };

/** What an annotation of the namespace lists; null where there is none. */
function listed({ world, call }: Admitted, annotation: string): Read {
  const { namespace } = call.info;
  const found = readNamespace(world, namespace);
  if (found === null) return { refusal: notFound({ group: '', name: 'namespaces' }, namespace) };
  const text = ownMember(objectAt(found, 'metadata', 'annotations'), annotation);
  if (typeof text !== 'string') return { tolerations: null };
  if (text === '') return { tolerations: [] };
  let value: JsonValue;
  try {
    value = parseJson(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { refusal: unclassified(syntaxError(text)) };
  }
  if (value === null) return { tolerations: [] };
  if (Array.isArray(value)) return fitted(value);
  const kind = typeof value === 'object' ? 'object' : typeof value;
  return { refusal: unclassified(goMismatch(kind)) };
}

/** Tolerations in the form of their type. */
function fitted(list: Tolerations): Read {
  const type = findType('core.v1.Toleration');
  if (type === undefined) return { tolerations: list };
  const tolerations: JsonValue[] = [];
  for (const one of list) {
    const body = fitObject(type, one, false);
    if (!body.ok) return { refusal: unclassified(body.message) };
    tolerations.push(body.object);
  }
  return { tolerations };
}

function goMismatch(kind: string): string {
  const shown = kind === 'boolean' ? 'bool' : kind;
  return `json: cannot unmarshal ${shown} into Go value of type []v1.Toleration`;
}

interface Settings {
  readonly defaults: Tolerations;
  readonly whitelist: Tolerations;
}

/** Throws an Error where the configuration is none, or holds tolerations that no pod may have. */
function readSettings(configuration: JsonValue): Settings {
  if (configuration === null) return { defaults: [], whitelist: [] };
  if (stringAt(configuration, 'apiVersion') !== VERSION) {
    throw new Error(`no kind is registered for ${stringAt(configuration, 'apiVersion')}`);
  }
  const defaults = listAt(configuration, 'default');
  const whitelist = listAt(configuration, 'whitelist');
  const found: Findings = [];
  checkTolerations(found, 'podtolerationrestriction.default', defaults);
  checkTolerations(found, 'podtolerationrestriction.whitelist', whitelist);
  if (found.length > 0) {
    throw new Error(`invalid config: ${aggregate(found.map(fieldErrorText))}`);
  }
  return { defaults, whitelist };
}

/** The plugin as its configuration wants it; null: nothing of its own. */
export function podTolerationRestriction(configuration: JsonValue): AdmissionPlugin {
  const settings = readSettings(configuration);
  const check = (write: Admitted): Status | null => {
    const own = listAt(write.object, 'spec', 'tolerations');
    if (own.length === 0) return null;
    const said = listed(write, WHITELIST);
    if ('refusal' in said) return said.refusal;
    const allowed = said.tolerations ?? settings.whitelist;
    if (allowed.length === 0) return null;
    if (own.every((one) => allowed.some((wide) => covers(wide, one)))) return null;
    return unclassified(
      'pod tolerations (possibly merged with namespace default tolerations) conflict with its ' +
        `${said.tolerations === null ? 'cluster' : 'namespace'} whitelist`,
    );
  };
  return {
    name: 'PodTolerationRestriction',
    handles: ({ resource }, operation, subresource) =>
      resource.storage.name === 'pods' &&
      (operation === 'CREATE' || operation === 'UPDATE') &&
      subresource === '',
    mutate: (write) => {
      const spec = objectAt(write.object, 'spec');
      if (spec === undefined || write.object === null) return null;
      let extra: Tolerations = [];
      if (write.operation === 'CREATE') {
        const said = listed(write, DEFAULTS);
        if ('refusal' in said) return said.refusal;
        extra = said.tolerations ?? settings.defaults;
      }
      if (qosClassOf(write.object) !== 'BestEffort') extra = [...extra, MEMORY_PRESSURE];
      if (extra.length > 0)
        spec['tolerations'] = mergedTolerations(listAt(spec, 'tolerations'), extra);
      return check(write);
    },
    validate: check,
    repeats: () => true,
  };
}
