/** Which Secrets a pod names, and whether its service account lets it. */
import { listAt, objectAt, stringAt } from '@megaplane/machinery/json';
import type { JsonObject, JsonValue } from '@megaplane/machinery/json-value';
import { addPodReferences } from '../../authorization/pod-references.ts';

const ENFORCED = 'kubernetes.io/enforce-mountable-secrets';
/** What Go's strconv.ParseBool takes for true. */
const TRUE = ['1', 't', 'T', 'true', 'TRUE', 'True'];

/** What a mirror of a static pod may not have; '' where it has none of it. */
export function mirrorFault(pod: JsonObject): string {
  const spec = objectAt(pod, 'spec') ?? {};
  if (stringAt(spec, 'serviceAccountName') !== '') {
    return 'a mirror pod may not reference service accounts';
  }
  const found = new Set<string>();
  addPodReferences({ spec }, found);
  if (Array.from(found).some((one) => one.startsWith('secrets/'))) {
    return 'a mirror pod may not reference secrets';
  }
  const hasToken = listAt(spec, 'volumes').some((volume) =>
    listAt(volume, 'projected', 'sources').some(
      (source) => objectAt(source, 'serviceAccountToken') !== undefined,
    ),
  );
  return hasToken ? 'a mirror pod may not use ServiceAccountToken volume projections' : '';
}

/** The first Secret that the account does not list, where it is to list all of them; or ''. */
export function secretFault(account: JsonObject, spec: JsonObject): string {
  const enforced = stringAt(account, 'metadata', 'annotations', ENFORCED);
  if (!TRUE.includes(enforced)) return '';
  const end =
    `is not allowed because service account ${stringAt(account, 'metadata', 'name')} ` +
    'does not reference that';
  const secrets = new Set(listAt(account, 'secrets').map((one) => stringAt(one, 'name')));
  for (const volume of listAt(spec, 'volumes')) {
    const secret = objectAt(volume, 'secret');
    if (secret === undefined) continue;
    const name = stringAt(secret, 'secretName');
    if (!secrets.has(name)) return `volume with secret.secretName="${name}" ${end} secret`;
  }
  for (const [field, word] of [
    ['initContainers', 'init container'],
    ['containers', 'container'],
  ] as const) {
    for (const container of listAt(spec, field)) {
      const what = foreignSecret(container, secrets);
      if (what !== '') return `${word} ${stringAt(container, 'name')} with ${what} ${end} secret`;
    }
  }
  const pulls = new Set(listAt(account, 'imagePullSecrets').map((one) => stringAt(one, 'name')));
  for (const [index, pull] of listAt(spec, 'imagePullSecrets').entries()) {
    const name = stringAt(pull, 'name');
    if (!pulls.has(name)) return `imagePullSecrets[${index}].name="${name}" ${end} imagePullSecret`;
  }
  return '';
}

function foreignSecret(container: JsonValue, known: ReadonlySet<string>): string {
  for (const variable of listAt(container, 'env')) {
    const secret = objectAt(variable, 'valueFrom', 'secretKeyRef');
    if (secret === undefined) continue;
    const name = stringAt(secret, 'name');
    if (known.has(name)) continue;
    return `envVar ${stringAt(variable, 'name')} referencing secret.secretName="${name}"`;
  }
  for (const source of listAt(container, 'envFrom')) {
    const secret = objectAt(source, 'secretRef');
    if (secret === undefined) continue;
    const name = stringAt(secret, 'name');
    if (!known.has(name)) return `envFrom referencing secret.secretName="${name}"`;
  }
  return '';
}
