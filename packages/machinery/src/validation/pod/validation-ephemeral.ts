/** Containers that are added to look into a running pod. */

import { duplicate, fieldNotFound, forbiddenField } from '../../meta/fielderrors.ts';
import { listAt, stringAt } from '../../json/json.ts';
import { isObject, type JsonObject, type JsonValue } from '../../json/json-value.ts';
import { checkContainer, checkImageSpace, PROBES, type PodScope } from './validation-containers.ts';
import { eachObject, type Findings } from '../field/validation-rules.ts';

const TEXT = 'cannot be set for an Ephemeral Container';

/** What only containers have that a pod is there for, in the order of upstream's struct. */
const REFUSED = [
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
  ...PROBES,
  'lifecycle',
];

/** `others` are the containers of the pod itself. */
export function checkEphemeralContainers(
  found: Findings,
  path: string,
  containers: readonly JsonValue[],
  others: readonly JsonValue[],
  scope: PodScope,
): void {
  const targets = new Set(others.map((container) => stringAt(container, 'name')));
  const names = new Set(targets);
  eachObject(containers, path, (container, at) => {
    checkContainer(found, at, container, scope);
    checkImageSpace(found, at, container);
    const name = stringAt(container, 'name');
    if (names.has(name)) found.push(duplicate(`${at}.name`, name));
    names.add(name);
    const target = stringAt(container, 'targetContainerName');
    if (target !== '' && !targets.has(target)) {
      found.push(fieldNotFound(`${at}.targetContainerName`, target));
    }
    checkRefused(found, at, container);
  });
}

function checkRefused(found: Findings, path: string, container: JsonObject): void {
  for (const field of REFUSED) {
    const value = container[field];
    const isZero = field === 'resources' && isObject(value) && Object.keys(value).length === 0;
    if (value === undefined || isZero) continue;
    found.push(forbiddenField(`${path}.${field}`, TEXT));
  }
  eachObject(listAt(container, 'volumeMounts'), `${path}.volumeMounts`, (mount, at) => {
    for (const field of ['subPath', 'subPathExpr']) {
      if (stringAt(mount, field) !== '') found.push(forbiddenField(`${at}.${field}`, TEXT));
    }
  });
}
