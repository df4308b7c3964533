/**
 * What is told to who writes an object that is let through: fields that do nothing any more, and
 * values that surprise. Upstream's texts, as `Warning` headers show them.
 */
import { ownMember } from '@megaplane/base/members';
import { definitionWarnings } from '../apiextensions/definition-warnings.ts';
import { listAt, numberAt, objectAt, stringAt } from '../json/json.ts';
import type { JsonObject } from '../json/json-value.ts';
import type { Resource } from '../scheme/kinds.ts';
import { dnsLabelErrors } from '../meta/names.ts';
import { ipWarnings } from './field-warnings.ts';
import {
  budgetOfQuota,
  claimWarnings,
  capacityWarnings,
  deviceWarnings,
  runtimeWarnings,
  storageClassWarnings,
  driverWarnings,
  endpointsWarnings,
  networkPolicyWarnings,
  nodeWarnings,
  secretWarnings,
  sliceWarnings,
  volumeWarnings,
} from './kind-warnings.ts';
import { claimSpecWarnings, podWarnings } from './pod-warnings.ts';
import { serviceWarnings } from './service-warnings.ts';

type Told = Iterable<string>;
interface WarningRule {
  readonly create?: (object: JsonObject) => Told;
  readonly update?: (next: JsonObject, previous: JsonObject) => Told;
  readonly status?: (next: JsonObject) => Told;
}

/** A rule that holds for new objects and changed ones. */
function always(rule: (object: JsonObject) => Told): WarningRule {
  return { create: rule, update: rule };
}

const POD_NAMES = 'this is used in Pod names and hostnames';

function* labelName(object: JsonObject, use: string): Told {
  const faults = dnsLabelErrors(stringAt(object, 'metadata', 'name'));
  if (faults.length === 0) return;
  const text = 'which can result in surprising behavior; a DNS label is recommended';
  yield `metadata.name: ${use}, ${text}: [${faults.join(' ')}]`;
}

/** A kind with a template of pods below `fields`; changes are looked at when they count. */
function templated(fields: readonly string[], isNamed: boolean): WarningRule {
  const template = (object: JsonObject): Told =>
    podWarnings(fields.join('.'), objectAt(object, ...fields));
  return {
    *create(object) {
      if (isNamed) yield* labelName(object, POD_NAMES);
      yield* template(object);
    },
    update: (next, previous) => (isCounted(next, previous) ? template(next) : []),
  };
}

function isCounted(next: JsonObject, previous: JsonObject): boolean {
  const generation = (object: JsonObject): number => numberAt(object, 'metadata', 'generation');
  return generation(next) !== generation(previous);
}

const COMPLETIONS_SOFT_MAX = 100_000;
const PARALLELISM_SOFT_MAX = 10_000;

function* jobSpecWarnings(path: string, spec: JsonObject | undefined): Told {
  const isLarge =
    stringAt(spec, 'completionMode') === 'Indexed' &&
    numberAt(spec, 'completions') > COMPLETIONS_SOFT_MAX &&
    numberAt(spec, 'parallelism') > PARALLELISM_SOFT_MAX;
  if (isLarge) {
    yield (
      `${path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism ` +
      'higher than 10^4, Kubernetes might not be able to track completedIndexes when a big ' +
      'number of indexes fail'
    );
  }
  yield* podWarnings(`${path}.template`, objectAt(spec, 'template'));
}

function jobs(fields: readonly string[]): WarningRule {
  const rule = (object: JsonObject): Told =>
    jobSpecWarnings(fields.join('.'), objectAt(object, ...fields));
  return {
    *create(object) {
      yield* labelName(object, POD_NAMES);
      yield* rule(object);
    },
    *update(next, previous) {
      if (isCounted(next, previous)) yield* rule(next);
      if (fields.length > 1 && stringAt(next, 'spec', 'schedule').includes('TZ')) {
        const more = 'see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/';
        yield (
          `cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, ${more} ` +
          'for more details'
        );
      }
    },
  };
}

const STATEFUL = templated(['spec', 'template'], false);

function* statefulWarnings(object: JsonObject, field: string): Told {
  for (const [index, claim] of listAt(object, 'spec', 'volumeClaimTemplates').entries()) {
    const path = `spec.volumeClaimTemplates[${index}].${field}`;
    yield* claimSpecWarnings(path, objectAt(claim, 'spec'));
  }
  if (numberAt(object, 'spec', 'revisionHistoryLimit') < 0) {
    const text = 'a negative value retains all historical revisions; a value >= 0 is recommended';
    yield `spec.revisionHistoryLimit: ${text}`;
  }
}

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';

function* accountWarnings(next: JsonObject, previous: JsonObject | null): Told {
  const has = (object: JsonObject): boolean =>
    Object.hasOwn(objectAt(object, 'metadata', 'annotations') ?? {}, ENFORCED);
  if (!has(next) || (previous !== null && has(previous))) return;
  const text = 'deprecated in v1.32+; prefer separate namespaces to isolate access to mounted';
  yield `metadata.annotations[${ENFORCED}]: ${text} secrets`;
}

const INGRESS_CLASS = 'kubernetes.io/ingress.class';

function* ingressWarnings(object: JsonObject): Told {
  if (objectAt(object, 'spec')?.['ingressClassName'] !== undefined) return;
  if (!Object.hasOwn(objectAt(object, 'metadata', 'annotations') ?? {}, INGRESS_CLASS)) return;
  yield `annotation "${INGRESS_CLASS}" is deprecated, please use 'spec.ingressClassName' instead`;
}

function* balancerWarnings(object: JsonObject): Told {
  for (const [index, ingress] of listAt(object, 'status', 'loadBalancer', 'ingress').entries()) {
    const path = `status.loadBalancer.ingress[${index}]`;
    yield* ipWarnings(path, stringAt(ingress, 'ip'));
  }
}

function* podStatusWarnings(pod: JsonObject): Told {
  for (const field of ['podIPs', 'hostIPs']) {
    for (const [index, ip] of listAt(pod, 'status', field).entries()) {
      yield* ipWarnings(`status.${field}[${index}].ip`, stringAt(ip, 'ip'));
    }
  }
}

const TEMPLATE = ['spec', 'template'];
const STATIC = '.static.k8s.io';

/** Names of configurations that come from files of the server. */
function* staticNameWarnings(object: JsonObject): Told {
  if (!stringAt(object, 'metadata', 'name').endsWith(STATIC)) return;
  const use = 'are reserved for static manifest-based configurations and cannot be managed';
  yield `metadata.name: names ending with "${STATIC}" ${use} via the API`;
}

function templateCount(set: JsonObject): string {
  return stringAt(set, 'metadata', 'annotations', 'deprecated.daemonset.template.generation');
}

const RULES: Readonly<Record<string, WarningRule>> = {
  pods: {
    *create(pod) {
      yield* labelName(pod, "this is used in the Pod's hostname");
      yield* podWarnings('', pod);
    },
    status: podStatusWarnings,
  },
  services: { ...always(serviceWarnings), status: balancerWarnings },
  'ingresses.networking.k8s.io': { create: ingressWarnings, status: balancerWarnings },
  'deployments.apps': templated(TEMPLATE, true),
  'replicasets.apps': templated(TEMPLATE, true),
  replicationcontrollers: {
    ...templated(TEMPLATE, true),
    // upstream looks at the template as it was
    update: (next, previous) =>
      isCounted(next, previous) ? podWarnings('spec.template', templateOf(previous)) : [],
  },
  'daemonsets.apps': {
    create: (set) => podWarnings('spec.template', templateOf(set)),
    update: (next, previous) =>
      templateCount(next) === templateCount(previous)
        ? []
        : podWarnings('spec.template', templateOf(next)),
  },
  'statefulsets.apps': {
    *create(set) {
      yield* STATEFUL.create?.(set) ?? [];
      yield* statefulWarnings(set, 'spec');
    },
    *update(next, previous) {
      yield* STATEFUL.update?.(next, previous) ?? [];
      yield* statefulWarnings(next, 'Spec');
    },
  },
  podtemplates: templated(['template'], false),
  'jobs.batch': jobs(['spec']),
  'cronjobs.batch': jobs(['spec', 'jobTemplate', 'spec']),
  persistentvolumeclaims: always(claimWarnings),
  persistentvolumes: always(volumeWarnings),
  nodes: always(nodeWarnings),
  secrets: always(secretWarnings),
  endpoints: always(endpointsWarnings),
  'endpointslices.discovery.k8s.io': {
    *create(slice) {
      if (stringAt(slice, 'addressType') === 'FQDN') {
        yield 'spec.addressType: FQDN endpoints are deprecated';
      }
      yield* sliceWarnings(slice);
    },
    update: sliceWarnings,
  },
  'networkpolicies.networking.k8s.io': always(networkPolicyWarnings),
  resourcequotas: { create: budgetOfQuota },
  serviceaccounts: {
    create: (account) => accountWarnings(account, null),
    update: accountWarnings,
  },
  'storageclasses.storage.k8s.io': always(storageClassWarnings),
  'csistoragecapacities.storage.k8s.io': always(capacityWarnings),
  'runtimeclasses.node.k8s.io': always(runtimeWarnings),
  'csidrivers.storage.k8s.io': {
    create: (driver) => driverWarnings(driver, null),
    update: driverWarnings,
  },
  'resourceslices.resource.k8s.io': always(deviceWarnings),
  'customresourcedefinitions.apiextensions.k8s.io': {
    create: (definition) => definitionWarnings(definition, null),
    update: definitionWarnings,
  },
  'validatingwebhookconfigurations.admissionregistration.k8s.io': always(staticNameWarnings),
  'mutatingwebhookconfigurations.admissionregistration.k8s.io': always(staticNameWarnings),
  'validatingadmissionpolicies.admissionregistration.k8s.io': always(staticNameWarnings),
  'validatingadmissionpolicybindings.admissionregistration.k8s.io': always(staticNameWarnings),
  'mutatingadmissionpolicies.admissionregistration.k8s.io': always(staticNameWarnings),
  'mutatingadmissionpolicybindings.admissionregistration.k8s.io': always(staticNameWarnings),
};

function templateOf(object: JsonObject): JsonObject | undefined {
  return objectAt(object, ...TEMPLATE);
}

/** Warnings of a new object that is valid. */
export function createWarnings({ storage }: Resource, object: JsonObject): Iterable<string> {
  return ownMember(RULES, storage.name)?.create?.(object) ?? [];
}

/** Warnings of a valid change; `subresource` is '' for the object itself. */
export function updateWarnings(
  { storage }: Resource,
  next: JsonObject,
  previous: JsonObject,
  subresource: string,
): Iterable<string> {
  const rule = ownMember(RULES, storage.name);
  if (subresource === '') return rule?.update?.(next, previous) ?? [];
  return subresource === 'status' ? (rule?.status?.(next) ?? []) : [];
}
